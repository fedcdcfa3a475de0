// SPDX-License-Identifier: Apache-2.0
// One rank, which mpirun has started: rank SCENARIO FOLDER.
#include <cstdlib>

#include "support/rank_scenarios.hpp"

int main(int, char** arguments) {
  ::alarm(250); // ends a rank that hangs
  const auto number = [](const char* name) { return std::atoi(std::getenv(name)); };
  return triax::test::scenarios::run(arguments[1], number("OMPI_COMM_WORLD_RANK"), number("OMPI_COMM_WORLD_SIZE"),
                                     arguments[2], triax::test::under_test(), false);
}
