// The headers that most tests include are compiled once, with this: see triax_add_test().
int main() {}
