// Package container knows a server that a container engine's client starts:
// docker run, podman run, nerdctl run. The client is our child; the server is
// not: it belongs to the engine, and outlives a client that is killed.
//
//	run, ok := container.Find(argv)
//	argv = run.WithIDFile(path)   // the engine writes the container's ID there
//	run.Note(folder, path)        // for whoever has to end it after our death
//	err := container.End(ctx, folder)
//
// A container is ended through the client that started it, by the ID in that
// file, and its end is proven by asking the client again.
package container
