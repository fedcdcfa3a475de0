// SPDX-License-Identifier: Apache-2.0
// Runs a program under mpirun. Ranks may be more than cores, and root may run them: tests run in containers.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "control/child.hpp"
#include "support/temp_folder.hpp"

namespace triax::comm_mpi::test {

constexpr const char* kNoMpirun = "mpirun was not found (Debian: openmpi-bin)";
inline bool has_mpirun() {
  std::error_code none;
  return std::filesystem::exists(MPIEXEC, none);
}

struct MpiEnd {
  int status = 0;     // exit status of mpirun; 128 and the signal if one ended it
  std::string errors; // stderr of all ranks, and of mpirun
};

inline MpiEnd mpirun(int ranks, const std::vector<std::string>& program, const std::vector<std::string>& options = {}) {
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  // Without ssh: all ranks are on this machine.
  std::vector<std::string> command = {MPIEXEC,           "--mca",     "plm",  "isolated",
                                      "--oversubscribe", "--bind-to", "none", "--quiet",
                                      "--timeout",       "240",       "-n",   std::to_string(ranks)};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), program.begin(), program.end());
  const triax::test::TempFolder folder;
  const std::filesystem::path errors = folder / "errors";
  MpiEnd out;
  {
    control::test::Child child(command, errors);
    const int status = child.wait();
    out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  out.errors = triax::test::read_file(errors);
  return out;
}

} // namespace triax::comm_mpi::test
