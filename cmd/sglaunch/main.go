// Command sglaunch starts an SGLang server, watches it and heals it.
package main

func main() {}
