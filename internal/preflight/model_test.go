package preflight

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// safetensors is a file of one tensor of so many bytes.
func safetensors(bytes int) string {
	header, _ := json.Marshal(map[string]any{
		"__metadata__": map[string]string{"format": "pt"},
		"w":            map[string]any{"dtype": "U8", "shape": []int{bytes}, "data_offsets": []int{0, bytes}},
	})
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + string(header) + strings.Repeat("x", bytes)
}

// checkpointIn writes a complete checkpoint of n shards, with an index.
func checkpointIn(t *testing.T, dir string, n int) {
	index := map[string]map[string]string{"weight_map": {}}
	for i := range n {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n)
		write(t, filepath.Join(dir, name), safetensors(1000))
		index["weight_map"][fmt.Sprintf("layer.%d", i)] = name
	}
	text, _ := json.Marshal(index)
	write(t, filepath.Join(dir, indexFile), string(text))
	write(t, filepath.Join(dir, "config.json"), `{"model_type": "glm"}`)
	write(t, filepath.Join(dir, "tokenizer.json"), "{}")
}

func TestLocalModel(t *testing.T) {
	shard := func(dir string) string { return filepath.Join(dir, "model-00002-of-00003.safetensors") }
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  want
	}{
		"whole": {func(t *testing.T, dir string) {}, want{OK, "", "in 3 files"}},
		"no folder": {func(t *testing.T, dir string) { os.RemoveAll(dir) },
			want{Fail, "model_path_missing", "does not exist"}},
		"no config": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "config.json")) },
			want{Fail, "model_path_missing", "no config.json"}},
		"no tokenizer": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "tokenizer.json")) },
			want{Warn, "", "no tokenizer"}},
		"shard missing": {func(t *testing.T, dir string) { os.Remove(shard(dir)) },
			want{Fail, "corrupt_weights", "lacks 1 weight files: model-00002"}},
		"no index, shard missing": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, indexFile)); os.Remove(shard(dir)) },
			want{Fail, "corrupt_weights", "lacks 1 weight files: model-00002"}},
		"index is no JSON, all there": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, indexFile), "{") },
			want{OK, "", "in 3 files"}},
		"dangling link": {func(t *testing.T, dir string) { os.Remove(shard(dir)); os.Symlink("/nonexistent", shard(dir)) },
			want{Fail, "corrupt_weights", "lacks 1"}},
		"LFS pointer": {func(t *testing.T, dir string) {
			write(t, shard(dir), "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5000\n")
		}, want{Fail, "corrupt_weights", "Git LFS pointer"}},
		"truncated": {func(t *testing.T, dir string) { os.Truncate(shard(dir), 900) },
			want{Fail, "corrupt_weights", "where its header promises 1000"}},
		"longer": {func(t *testing.T, dir string) { write(t, shard(dir), safetensors(1000)+"more") },
			want{Fail, "corrupt_weights", "1004 bytes of tensors"}},
		"truncated in the header": {func(t *testing.T, dir string) { os.Truncate(shard(dir), 50) },
			want{Fail, "corrupt_weights", "with a header of"}},
		"a few bytes": {func(t *testing.T, dir string) { write(t, shard(dir), "xx") },
			want{Fail, "corrupt_weights", "only 2 bytes"}},
		"empty": {func(t *testing.T, dir string) { write(t, shard(dir), "") },
			want{Fail, "corrupt_weights", "an empty file"}},
		"header of noise": {func(t *testing.T, dir string) {
			write(t, shard(dir), string(binary.LittleEndian.AppendUint64(nil, 4))+"noisenoise")
		}, want{Fail, "corrupt_weights", "no JSON"}},
		"huge header": {func(t *testing.T, dir string) { write(t, shard(dir), strings.Repeat("\xff", 100)) },
			want{Fail, "corrupt_weights", "with a header of"}},
		"no weights": {func(t *testing.T, dir string) {
			for _, f := range glob(dir, "model*") {
				os.Remove(f)
			}
		}, want{Fail, "model_path_missing", "no weights"}},
		"a folder named as a shard": {func(t *testing.T, dir string) { os.Remove(shard(dir)); os.Mkdir(shard(dir), 0o755) },
			want{OK, "", "in 2 files"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "model")
			checkpointIn(t, dir, 3)
			c.spoil(t, dir)
			got := server(t, "--model-path", dir).check("model")
			expect(t, got[:1], c.want)
		})
	}
}

func glob(dir, pattern string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, pattern))
	return names
}

func TestModelByOtherWays(t *testing.T) {
	dir := t.TempDir()
	checkpointIn(t, filepath.Join(dir, "m"), 1)
	write(t, filepath.Join(dir, "m.gguf"), "GGUF")
	write(t, filepath.Join(dir, "old", "config.json"), "{}")
	write(t, filepath.Join(dir, "old", "tokenizer.model"), "")
	write(t, filepath.Join(dir, "old", "pytorch_model-00001-of-00002.bin"), "x")
	write(t, filepath.Join(dir, "old", "training_args.bin"), "")
	for _, c := range []struct {
		flags string
		want  want
	}{
		{"--model-path m", want{OK, "", "in 1 files"}},
		{"--model-path ./m --load-format dummy", want{OK, "", "not looked at"}},
		{"--model-path m.gguf", want{OK, "", "one file"}},
		{"--model-path old", want{Fail, "corrupt_weights", "lacks 1 weight files: pytorch_model-00002-of-00002.bin"}},
		{"--model-path ./gone", want{Fail, "model_path_missing", "does not exist"}},
		{"--model-path s3://bucket/m", want{OK, "", "from afar"}},
		{"--model-path a/b/c", want{Warn, "", "not known"}},
		{"", want{Warn, "", "does not tell which model"}},
	} {
		s := server(t, strings.Fields(c.flags)...)
		s.Dir = dir
		expect(t, s.check("model"), c.want)
	}
	s := server(t, "--model-path", "m", "--delete-ckpt-after-loading")
	s.Dir = dir
	expect(t, s.check("model"), want{Warn, "", "deletes"}, want{OK, "", "in 1"})
}

func TestDraftAndAdapters(t *testing.T) {
	dir := t.TempDir()
	checkpointIn(t, filepath.Join(dir, "m"), 1)
	write(t, filepath.Join(dir, "a", "adapter_config.json"), "{}")
	s := server(t, "--model-path", dir+"/m", "--speculative-draft-model-path", dir+"/d",
		"--lora-paths", "x="+dir+"/a", dir+"/b", "hub/adapter")
	expect(t, s.check("draft_model"), want{Fail, "model_path_missing", "/d"})
	expect(t, s.check("adapters"), want{Fail, "model_path_missing", "/b"})
	expect(t, server(t).check("draft_model"))
	expect(t, server(t).check("adapters"))
}

func TestHubCache(t *testing.T) {
	const name, commit = "zai-org/GLM-5", "0123abcd"
	cache := func(t *testing.T) (*scene, string) {
		s := server(t, "--model-path", name)
		folder := filepath.Join(s.Dir, ".cache/huggingface/hub/models--zai-org--GLM-5")
		write(t, filepath.Join(folder, "refs/main"), commit+"\n")
		checkpointIn(t, filepath.Join(folder, "snapshots", commit), 2)
		return s, folder
	}
	t.Run("whole", func(t *testing.T) {
		s, _ := cache(t)
		expect(t, s.check("model"), want{OK, "", "in 2 files"})
	})
	t.Run("by revision", func(t *testing.T) {
		s, _ := cache(t)
		s.Argv = append(s.Argv, "--revision", commit)
		expect(t, s.check("model"), want{OK, "", "in 2 files"})
	})
	t.Run("other places", func(t *testing.T) {
		for variable, path := range map[string]string{"HF_HOME": ".cache/huggingface", "HF_HUB_CACHE": ".cache/huggingface/hub", "XDG_CACHE_HOME": ".cache"} {
			s, _ := cache(t)
			s.Env = []string{"HOME=/nonexistent", variable + "=" + filepath.Join(s.Dir, path)}
			expect(t, s.check("model"), want{OK, "", "in 2 files"})
		}
	})
	t.Run("absent", func(t *testing.T) {
		s := server(t, "--model-path", name)
		expect(t, s.check("model"), want{Warn, "", "will be downloaded"})
		s.Env = append(s.Env, "HF_HUB_OFFLINE=1")
		expect(t, s.check("model"), want{Fail, "hf_network", "may not be asked"})
	})
	t.Run("incomplete", func(t *testing.T) {
		s, folder := cache(t)
		os.Remove(glob(folder, "snapshots/*/model-00001*")[0])
		write(t, filepath.Join(folder, "blobs/abc.incomplete"), "")
		expect(t, s.check("model"), want{Warn, "", "lacks 1"}, want{Warn, "", "unfinished"})
		s.Env = append(s.Env, "TRANSFORMERS_OFFLINE=yes")
		expect(t, s.check("model"), want{Fail, "corrupt_weights", "lacks 1"}, want{Warn, "", "unfinished"})
	})
}

func FuzzSafetensors(f *testing.F) {
	f.Add([]byte(safetensors(10)))
	f.Add([]byte(lfsHead))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		why := damage(bytes.NewReader(data), int64(len(data)), true)
		if why == "" && len(data) < 8 {
			t.Errorf("%d bytes are called whole", len(data))
		}
	})
}
