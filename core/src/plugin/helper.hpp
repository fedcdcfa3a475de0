// Runs a program and reads what it prints: loading a stranger's library may end the process that does it.
//
// Threads: any. Ownership: values. Blocking: until the program ends or its time is over. Errors: Error if no process
// can be started; what becomes of it is in the result.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace triax::plugin {

struct HelperResult {
  int status = 0;      // exit status, if it ended by itself
  std::string output;  // its stdout; its stderr is dropped
  std::string failure; // "killed by signal 11 (Segmentation fault)", "no answer after 20 s", or empty
};

HelperResult run_helper(const std::vector<std::string>& command, std::chrono::seconds limit = std::chrono::seconds(20));

} // namespace triax::plugin
