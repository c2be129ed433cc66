package phases

// MapText puts every text of the output that the report quotes through f, and
// leaves the report that it was made from alone. Whoever shows a report to
// others masks secrets with it: the server prints them in clear.
func (r Report) MapText(f func(string) string) Report {
	each := func(e *Evidence) *Evidence {
		if e == nil {
			return nil
		}
		copied := *e
		copied.Text = f(e.Text)
		return &copied
	}
	r.Root = each(r.Root)
	echoes := r.Echoes
	r.Echoes = nil
	for _, e := range echoes {
		r.Echoes = append(r.Echoes, *each(&e))
	}
	earlier := r.Earlier
	r.Earlier = nil
	for _, e := range earlier {
		e.Root = each(e.Root)
		r.Earlier = append(r.Earlier, e)
	}
	return r
}
