PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE attempts (
	launch      TEXT NOT NULL REFERENCES launches (id) ON DELETE CASCADE,
	n           INTEGER NOT NULL,
	machine     TEXT NOT NULL DEFAULT '', -- these seven: as the attempt ran
	model       TEXT NOT NULL DEFAULT '',
	flags       TEXT NOT NULL DEFAULT '',
	version     TEXT NOT NULL DEFAULT '',
	patches     TEXT NOT NULL DEFAULT '',
	pages       TEXT NOT NULL DEFAULT '',
	jit         TEXT NOT NULL DEFAULT '',
	began       INTEGER NOT NULL DEFAULT 0,
	ready       INTEGER NOT NULL DEFAULT 0,
	ended       INTEGER NOT NULL DEFAULT 0,
	outcome     TEXT NOT NULL DEFAULT '',
	cause       TEXT NOT NULL DEFAULT '',
	fingerprint TEXT NOT NULL DEFAULT '',
	phase       TEXT NOT NULL DEFAULT '',
	rank        TEXT NOT NULL DEFAULT '',
	text        TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (launch, n)
) WITHOUT ROWID, STRICT;
INSERT INTO "attempts" VALUES('20261130T060000.000Z-glm-0001',1,'m1','/models/GLM-5-NVFP4','f1','0.5.10','autotune','warm','warm',1796022000000,1796022720000,1796022840000,'crashed','oom_runtime','oom_runtime|serving','serving','TP3','torch.OutOfMemoryError: CUDA out of memory');
CREATE TABLE changes (                    -- in what an attempt ran otherwise than asked
	launch  TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	place   INTEGER NOT NULL,             -- in the order of the ladder
	rung    TEXT NOT NULL,
	text    TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (launch, attempt, place),
	FOREIGN KEY (launch, attempt) REFERENCES attempts (launch, n) ON DELETE CASCADE
) WITHOUT ROWID, STRICT;
INSERT INTO "changes" VALUES('20261130T060000.000Z-glm-0001',1,0,'graph-capture-oom','--cuda-graph-max-bs 64');
CREATE TABLE launches (
	id      TEXT PRIMARY KEY,             -- folder under launches/; IDs sort by time
	name    TEXT NOT NULL DEFAULT '',
	host    TEXT NOT NULL DEFAULT '',
	command TEXT NOT NULL DEFAULT '[]',   -- JSON array, masked
	machine TEXT NOT NULL DEFAULT '',     -- these five: as the launch was asked for
	model   TEXT NOT NULL DEFAULT '',
	flags   TEXT NOT NULL DEFAULT '',
	version TEXT NOT NULL DEFAULT '',
	patches TEXT NOT NULL DEFAULT '',
	began   INTEGER NOT NULL DEFAULT 0,   -- Unix milliseconds, as all times; 0 = not
	ended   INTEGER NOT NULL DEFAULT 0,
	code    INTEGER,                      -- exit code; NULL until ended
	reason  TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID, STRICT;
INSERT INTO "launches" VALUES('20261130T060000.000Z-glm-0001','glm','box1','["python","-m","sglang.launch_server"]','m1','/models/GLM-5-NVFP4','f1','0.5.10','autotune',1796018400000,1796022000000,10,'gave up: the same cause 3 times');
CREATE TABLE numbers (
	launch  TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	rank    TEXT NOT NULL,
	name    TEXT NOT NULL,                -- kv_tokens, avail_mem_gb, weights_gb, ...
	value   REAL NOT NULL,
	PRIMARY KEY (launch, attempt, rank, name),
	FOREIGN KEY (launch, attempt) REFERENCES attempts (launch, n) ON DELETE CASCADE
) WITHOUT ROWID, STRICT;
INSERT INTO "numbers" VALUES('20261130T060000.000Z-glm-0001',1,'TP0','avail_mem_gb',8.4);
CREATE TABLE patches (
	launch  TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	name    TEXT NOT NULL,
	state   TEXT NOT NULL DEFAULT '',     -- before: pristine, applied, drifted, ...
	effect  TEXT NOT NULL DEFAULT '',     -- effective, partial, ineffective, ...
	PRIMARY KEY (launch, attempt, name),
	FOREIGN KEY (launch, attempt) REFERENCES attempts (launch, n) ON DELETE CASCADE
) WITHOUT ROWID, STRICT;
INSERT INTO "patches" VALUES('20261130T060000.000Z-glm-0001',1,'autotune','pristine','effective');
CREATE TABLE phases (
	launch   TEXT NOT NULL,
	attempt  INTEGER NOT NULL,
	rank     TEXT NOT NULL,               -- '' = the launch as a whole
	phase    TEXT NOT NULL,
	began    INTEGER NOT NULL DEFAULT 0,
	took     INTEGER NOT NULL DEFAULT 0,  -- milliseconds, by a clock that does not jump
	complete INTEGER NOT NULL DEFAULT 0,  -- 1 = a later phase followed
	quiet    INTEGER NOT NULL DEFAULT 0,  -- longest stretch in which nothing moved, milliseconds
	done     INTEGER NOT NULL DEFAULT 0,
	total    INTEGER NOT NULL DEFAULT 0,
	unit     TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (launch, attempt, rank, phase),
	FOREIGN KEY (launch, attempt) REFERENCES attempts (launch, n) ON DELETE CASCADE
) WITHOUT ROWID, STRICT;
INSERT INTO "phases" VALUES('20261130T060000.000Z-glm-0001',1,'TP0','loading_weights',1796018400000,382000,1,9000,83,83,'shards');
CREATE INDEX launches_by_name ON launches (name, id);
CREATE INDEX attempts_by_key ON attempts (machine, model, flags, launch);
COMMIT;
PRAGMA user_version = 1;
