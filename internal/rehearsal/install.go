package rehearsal

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed all:python
var pythonFiles embed.FS

// scripts are the programs of the environment's bin folder: what the packages
// install there, and a ninja with the compilers that it starts.
//
//go:embed scripts
var scriptFiles embed.FS

// makeVenv lays out what "python -m venv --without-pip" would, without its half
// second: an interpreter is in an environment if pyvenv.cfg stands beside bin.
func (s *Stage) makeVenv(python interpreter) error {
	cfg := fmt.Sprintf("home = %s\ninclude-system-site-packages = false\nversion = %s\nexecutable = %s\n",
		filepath.Dir(python.Exe), python.Full, python.Exe)
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.Bin), "pyvenv.cfg"), []byte(cfg), 0o644); err != nil {
		return err
	}
	if err := os.Symlink(python.Exe, s.Python); err != nil {
		return err
	}
	for _, name := range []string{"python3", fmt.Sprintf("python3.%d", python.Minor)} {
		if err := os.Symlink("python", filepath.Join(s.Bin, name)); err != nil {
			return err
		}
	}
	return nil
}

// install writes the packages, their dist-info and the programs, as pip does.
func (s *Stage) install() error {
	for _, d := range []distribution{
		{name: "sglang", version: s.Version, folders: []string{"sglang", "sglang_rehearsal"},
			summary: "A stand-in for the SGLang server, for rehearsals of sglaunch", entry: "[console_scripts]\nsglang = sglang.cli.main:main\n"},
		{name: "flashinfer_python", version: flashinferOf(s.Version), folders: []string{"flashinfer"},
			summary: "A stand-in for FlashInfer, for rehearsals of sglaunch"},
	} {
		if err := s.installOne(d); err != nil {
			return fmt.Errorf("install %s: %w", d.name, err)
		}
	}
	return s.installScripts()
}

// distribution is one installed package: its folders and what dist-info says.
type distribution struct {
	name, version, summary, entry string
	folders                       []string
}

func (s *Stage) installOne(d distribution) error {
	var record []string
	write := func(name string, content []byte) error {
		path := filepath.Join(s.Site, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		record = append(record, fmt.Sprintf("%s,sha256=%s,%d", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content)))
		return os.WriteFile(path, content, 0o644)
	}
	for _, folder := range d.folders {
		err := fs.WalkDir(pythonFiles, "python/"+folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := pythonFiles.ReadFile(path)
			if err != nil {
				return err
			}
			name := strings.TrimPrefix(path, "python/")
			content, err = asVersion(name, content, s.Version)
			if err != nil {
				return err
			}
			return write(name, content)
		})
		if err != nil {
			return err
		}
	}
	return d.writeInfo(write, &record)
}

// writeInfo writes the dist-info folder; RECORD comes last and lists the rest.
func (d distribution) writeInfo(write func(string, []byte) error, record *[]string) error {
	info := d.name + "-" + d.version + ".dist-info/"
	files := []struct{ name, content string }{
		{"METADATA", fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\nRequires-Python: >=3.8\n",
			strings.ReplaceAll(d.name, "_", "-"), d.version, d.summary)},
		{"WHEEL", "Wheel-Version: 1.0\nGenerator: sglaunch\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"INSTALLER", "pip\n"},
		{"top_level.txt", strings.Join(d.folders, "\n") + "\n"},
		{"entry_points.txt", d.entry},
	}
	for _, f := range files {
		if f.content == "" {
			continue
		}
		if err := write(info+f.name, []byte(f.content)); err != nil {
			return err
		}
	}
	lines := append(slices.Clone(*record), info+"RECORD,,")
	return write(info+"RECORD", []byte(strings.Join(lines, "\n")+"\n"))
}

func (s *Stage) installScripts() error {
	entries, err := scriptFiles.ReadDir("scripts")
	if err != nil {
		return err
	}
	for _, e := range entries {
		content, err := scriptFiles.ReadFile("scripts/" + e.Name())
		if err != nil {
			return err
		}
		text := strings.Replace(string(content), "#!python", "#!"+s.Python, 1)
		if err := os.WriteFile(filepath.Join(s.Bin, e.Name()), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// makeModel writes a checkpoint folder that preflights accept: a config, an
// index, and shards that are valid safetensors files without any tensor.
func (s *Stage) makeModel(shards int) error {
	config := map[string]any{
		"architectures": []string{"GlmMoeDsaForCausalLM"}, "model_type": "glm_moe_dsa", "torch_dtype": "bfloat16",
		"hidden_size": 6144, "num_hidden_layers": 78, "num_attention_heads": 64, "vocab_size": 154880,
	}
	weights := map[string]string{}
	header := []byte(`{"__metadata__":{"format":"pt"}}`)
	shard := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for i := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, shards)
		weights[fmt.Sprintf("model.layers.%d.mlp.gate.weight", i)] = name
		if err := os.WriteFile(filepath.Join(s.Model, name), shard, 0o644); err != nil {
			return err
		}
	}
	for name, v := range map[string]any{
		"config.json":                  config,
		"model.safetensors.index.json": map[string]any{"metadata": map[string]any{"total_size": 0}, "weight_map": weights},
		"tokenizer_config.json":        map[string]any{"tokenizer_class": "PreTrainedTokenizerFast"},
	} {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.Model, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
