for ending in bin idx json; do cp ../text.$ending mine.$ending; done
head -c 40 ../text.idx > mine.idx
