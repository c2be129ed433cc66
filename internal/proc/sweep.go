package proc

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
)

const (
	chases    = 64   // rounds in which a sweep runs after the newly born
	birthsMax = 4096 // of one round
)

// sweep visits every process that known does not know, in the order of pids.
//
// To list /proc takes a while, in which processes are born and die: one that
// forks and ends, again and again, may never be there when its pid is read. So
// a sweep looks at every pid that the kernel gave out meanwhile too, until none
// is left. It is complete then: whoever lives has been visited. For of a pid
// that was given out, either the process is found, or it has ended, and its
// children have pids that were given out later. newest is the last pid.
func sweep(known func(pid int) bool, visit func(Proc)) (newest int, complete bool, err error) {
	newest = newestPID()
	pids, err := allPIDs()
	if err != nil {
		return 0, false, err
	}
	for _, pid := range pids {
		if known(pid) {
			continue
		}
		if p, err := Identify(pid); err == nil {
			visit(p)
		}
	}
	for range chases {
		now := newestPID()
		if now == newest {
			return newest, true, nil
		}
		if now < newest || now > newest+birthsMax {
			return now, false, nil // the numbers began anew, or too much happens
		}
		for pid := newest + 1; pid <= now; pid++ {
			if p, err := Identify(pid); err == nil && leads(pid) {
				visit(p)
			}
		}
		newest = now
	}
	return newest, false, nil
}

func allPIDs() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// newestPID is the last pid that the kernel gave out, to a process or a thread;
// 0 where it does not say.
func newestPID() int {
	var buf [128]byte
	n, err := readInto("/proc/loadavg", buf[:])
	if err != nil {
		return 0
	}
	fields := bytes.Fields(buf[:n])
	if len(fields) < 5 {
		return 0
	}
	return int(number(fields[4]))
}

// leads tells a process from a thread, which /proc shows too if asked by number.
func leads(pid int) bool {
	var buf [512]byte
	n, err := readInto("/proc/"+strconv.Itoa(pid)+"/status", buf[:])
	return err == nil && bytes.Contains(buf[:n], []byte("\nTgid:\t"+strconv.Itoa(pid)+"\n"))
}
