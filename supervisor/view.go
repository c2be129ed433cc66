package supervisor

// ActivePatches lists the patches in force in the current attempt.
func (m *Machine) ActivePatches() []ActivePatch { return m.run.Patches }
