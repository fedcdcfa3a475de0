for ending in bin idx json; do cp ../text.$ending mine.$ending; done
echo "this is no index of a data set, but a text" > mine.idx
