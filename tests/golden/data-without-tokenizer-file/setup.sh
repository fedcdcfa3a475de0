for ending in bin idx; do cp ../text.$ending mine.$ending; done
