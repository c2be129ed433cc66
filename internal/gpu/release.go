package gpu

// Need is what the next attempt wants free.
type Need struct {
	UUID string
	Free uint64 // bytes
}

// Release is the answer to: did the GPUs of an attempt come free?
type Release struct {
	Done    bool     // none of ours holds memory, and the next attempt's need is free
	Unknown bool     // the driver did not tell enough to say
	Ours    []Holder // processes of the attempt that still hold memory
	Foreign []Holder // processes of others that hold more than before: news, not failure
	Ghosts  []Ghost  // memory or work that no process explains
	Short   []Need   // GPUs with less free than wanted; Free is what is free
}

// Holder is a process that holds memory of a GPU.
type Holder struct {
	UUID  string
	Index int
	PID   int
	Bytes Reading
}

// Ghost is memory in use, or full utilisation, with no process on the GPU.
type Ghost struct {
	UUID  string
	Index int
	Bytes uint64
	Util  Reading
}

// Released compares the GPUs before and after an attempt. ours tells whether a
// pid belonged to the attempt.
func Released(before, after []GPU, ours func(pid int) bool, need []Need) Release { return Release{} }
