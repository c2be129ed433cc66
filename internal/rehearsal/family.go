package rehearsal

import (
	"fmt"
	"strings"
)

// listBegin and listEnd bracket the decision list in model_runner.py.
const (
	listBegin = "        # TODO smor-"
	listEnd   = "        ]:\n"
)

// The parts of the decision list that the releases are put together from. The
// entry that the founding patch un-comments stands under a TODO of its own;
// 0.5.10 brought a second commented entry, which must stay as it is.
const (
	smor    = "        # TODO smor- support other cases for flashinfer autotune, such as, mamba backend\n\n"
	open    = "        if backend_str not in [\n"
	trtllm  = "            \"flashinfer_trtllm\",\n"
	mxfp4   = "            \"flashinfer_mxfp4\",\n"
	cutedsl = "            \"flashinfer_cutedsl\",\n"
	routed  = "            # TODO: Enable for flashinfer_trtllm_routed once its autotuner issue is fixed upstream.\n" +
		"            # \"flashinfer_trtllm_routed\",\n"
	cutlass = "            # TODO: flashinfer_cutlass will cause some flashinfer compilation errors. To be fixed.\n" +
		"            # \"flashinfer_cutlass\",\n"
	active = "            \"flashinfer_trtllm_routed\",\n            \"flashinfer_cutlass\",\n"
)

// families gives, for each release that the package can play, the FlashInfer
// that came with it and the text of its decision list. The last one needs no
// patch.
var families = []struct{ version, flashinfer, list string }{
	{"0.5.7", "0.5.3", open + trtllm + mxfp4 + cutlass},
	{"0.5.8", "0.6.1", open + trtllm + mxfp4 + cutlass},
	{"0.5.8.post1", "0.6.1", open + trtllm + mxfp4 + cutlass},
	{"0.5.9", "0.6.3", smor + open + trtllm + mxfp4 + cutlass},
	{"0.5.10", "0.6.7.post2", smor + open + trtllm + routed + mxfp4 + cutlass},
	{"0.5.10.post1", "0.6.7.post2", smor + open + trtllm + routed + mxfp4 + cutlass},
	{"0.5.11", "0.6.8.post1", smor + open + trtllm + routed + mxfp4 + cutedsl + cutlass},
	{"0.5.12", "0.6.11.post1", smor + open + trtllm + routed + mxfp4 + cutedsl + cutlass},
	{"0.5.12.post1", "0.6.11.post1", smor + open + trtllm + routed + mxfp4 + cutedsl + cutlass},
	{"0.5.13", "0.6.12", smor + open + trtllm + active + mxfp4 + cutedsl},
}

// Versions lists the SGLang releases that a stage can play, oldest first.
func Versions() []string {
	var all []string
	for _, f := range families {
		all = append(all, f.version)
	}
	return all
}

// flashinferOf is the version of FlashInfer that came with a known release.
func flashinferOf(version string) string {
	for _, f := range families {
		if f.version == version {
			return f.flashinfer
		}
	}
	return ""
}

func autotuneList(version string) (string, error) {
	for _, f := range families {
		if f.version == version {
			return f.list, nil
		}
	}
	return "", fmt.Errorf("cannot play SGLang %q: known are %s", version, strings.Join(Versions(), ", "))
}

// asVersion gives the bytes that a file of the packages has in that release of SGLang.
func asVersion(name string, content []byte, version string) ([]byte, error) {
	text := string(content)
	switch name {
	case "sglang/version.py":
		return []byte(strings.Replace(text, DefaultVersion, version, 1)), nil
	case "flashinfer/__init__.py":
		return []byte(strings.Replace(text, flashinferOf(DefaultVersion), flashinferOf(version), 1)), nil
	case "sglang/srt/model_executor/model_runner.py":
		list, err := autotuneList(version)
		if err != nil {
			return nil, err
		}
		before, rest, ok := strings.Cut(text, listBegin)
		_, after, ok2 := strings.Cut(rest, listEnd)
		if !ok || !ok2 {
			return nil, fmt.Errorf("cannot find the decision list in %s", name)
		}
		return []byte(before + list + listEnd + after), nil
	}
	return content, nil
}
