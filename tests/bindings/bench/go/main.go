// bench.c in Go.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"time"

	"kvartet"
)

const count, rounds, block = 128, 80, 16

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	o := kvartet.DefaultModelOptions()
	o.ID, o.Layers, o.KVHeads, o.KDim, o.VDim = []byte("bench"), 4, 4, 64, 64
	model := must(kvartet.NewModel(o))
	codec := must(kvartet.NewCodec(model, "raw", nil))
	tokens := make([]int32, count*block)
	for i := range tokens {
		tokens[i] = int32(i)
	}
	keys := must(model.Keys(tokens, kvartet.KeyOptions{}))
	view := kvartet.ContiguousView(o, len(tokens))
	view.Memory = make([]byte, kvartet.ViewBytes(o, len(tokens)))
	for i := range view.Memory {
		view.Memory[i] = byte(i*7+i/251) & 0x3f
	}
	frames := make([][]byte, count)
	for i := range frames {
		frame, _, err := codec.Encode(view, kvartet.Spec{TokenBegin: uint64(i * block), TokenCount: block, Key: keys[i]})
		frames[i] = must(frame, err)
	}
	runtime := must(kvartet.NewRuntime(nil))
	cache := must(kvartet.OpenCache(runtime, "mem:?capacity=256MiB"))
	buffer := make([]byte, len(frames[0])+4096)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var took time.Duration
		for round := 0; round < rounds; round++ {
			begun := time.Now()
			for i := range frames {
				check(cache.Put(&keys[i], frames[i]))
				_, err := cache.GetInto(&keys[i], buffer)
				check(err)
			}
			took += time.Since(begun)
			must(cache.Remove(keys))
		}
		fmt.Println(took.Nanoseconds())
	}
	check(cache.Close())
	check(runtime.Close())
	check(codec.Close())
	check(model.Close())
}
