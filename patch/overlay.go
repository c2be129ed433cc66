package patch

import "errors"

func (pl *planner) overlayObstacle(l look, now *content) (why, hint string) { return "", "" }

func (s *session) prepareOverlay(p *Plan, owner Owner, applied *Applied) (string, error) {
	for _, c := range p.files {
		if c.method == MethodOverlay {
			return "", errors.New("not in this version")
		}
	}
	return "", nil
}
