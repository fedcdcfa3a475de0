for ending in bin idx json; do cp ../text.$ending mine.$ending; done
head -c 500 ../text.bin > mine.bin
