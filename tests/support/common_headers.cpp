// Target for the precompiled headers that triax_add_test() uses.
int main() {}
