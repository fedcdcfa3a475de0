// SPDX-License-Identifier: Apache-2.0
// Target for the precompiled headers that triax_add_test() uses.
int main() {}
