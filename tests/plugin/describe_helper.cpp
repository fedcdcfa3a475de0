// Prints what describe() tells about one file.
#include <cstdio>

#include "plugin/describe.hpp"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::puts(triax::plugin::to_json(triax::plugin::describe(argv[argc - 1])).c_str());
  return 0;
}
