// triax_add_test() precompiles the headers that most tests include, with this file.
int main() {}
