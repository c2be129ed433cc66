// Package rehearsal puts an SGLang server on a stage: a Python package named
// sglang, our own, run by a real python3 that needs nothing but its standard
// library. To whoever watches it from outside it is the real one: the tree of
// processes and their titles, the lines and bars, the signals, the HTTP codes
// while it starts, the way it dies. No GPU, no model and no network are needed.
//
// Three things make a rehearsal:
//
//   - a Stage (Build): a folder with a virtual environment of its own, in which
//     the package is installed as pip would install it, so that finding,
//     patching and reverting its files is real;
//   - Scenarios: named misfortunes, written as data (scenarios.json), that the
//     server plays when SGLAUNCH_REHEARSAL names them;
//   - a stand-in libnvidia-ml.so.1 (BuildNVML), which answers from a Board: a
//     text file that tests write and a folder in which every rank notes what it
//     holds. Memory is gone when its process is gone, as with a real driver.
//
// What the server does follows what its files say: un-comment the entry in
// model_runner.py and the autotune really runs.
//
// Everything lives below the folder given to Build. Nothing touches a real
// sglang, a GPU, or the state of sglaunch itself, and processes that hang on
// purpose end by themselves after a time, should nobody end them.
package rehearsal
