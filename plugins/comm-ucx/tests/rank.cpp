// SPDX-License-Identifier: Apache-2.0
// One rank as a separate process, for test_processes.cpp: rank SCENARIO RANK RANKS FOLDER TRANSPORTS.
#include <cstdlib>

#include "support/rank_scenarios.hpp"

int main(int, char** arguments) {
  ::alarm(250); // ends a rank that hangs
  triax::test::Communication communication = triax::test::under_test();
  const std::string transports = arguments[5];
  communication.options.set("transports", transports);
  const bool is_tcp = transports == "tcp,self"; // else shared memory, over which UCX does not detect a lost peer
  if (is_tcp) communication.options.set("devices", std::string("lo"));
  return triax::test::scenarios::run(arguments[1], std::atoi(arguments[2]), std::atoi(arguments[3]), arguments[4],
                                     communication, is_tcp);
}
