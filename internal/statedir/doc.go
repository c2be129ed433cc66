// Package statedir knows where sglaunch keeps what outlives it.
//
// The state directory is the first of
//
//	$SGLAUNCH_STATE            a person's choice; rehearsals and tests
//	$STATE_DIRECTORY           a systemd unit with StateDirectory=
//	/var/lib/sglaunch          for root, so that a service and root's shell agree
//	$XDG_STATE_HOME/sglaunch
//	~/.local/state/sglaunch
//
// and the runtime directory, which holds sockets and may vanish at boot, the
// first of
//
//	$SGLAUNCH_RUNTIME, $SGLAUNCH_STATE/run
//	$RUNTIME_DIRECTORY         a systemd unit with RuntimeDirectory=
//	/run/sglaunch              for root
//	$XDG_RUNTIME_DIR/sglaunch  where that folder is ours
//	the state directory's run  where a login session gave none
//
// Layout of the state directory:
//
//	history.db                 launches, attempts, phases, trials
//	patches/                   ledger and originals
//	launches/ID/               one sglaunch run; IDs sort by time
//	    launch.json journal.jsonl
//	    current                link to the newest attempt
//	    attempts/N/            server.log events.jsonl evidence/
//	tune/NAME/                 the night of a study: journal.jsonl, results, winner.toml
//
// Directories are 0700 and belong to us, files are 0600. Nothing here is ever
// overwritten: launches and attempts are made with names that did not exist. Root
// may ask the launches of another user, as that user (OpenToAsk).
package statedir
