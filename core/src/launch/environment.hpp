// SPDX-License-Identifier: Apache-2.0
// The environment variables that the launcher sets for this process: its rank, the number of ranks, and the address of
// rank 0.
//
// Threads: any. Errors: Error with a variable that is missing, invalid or contradicts another; the hint says what to
// set.
//
// Checked in this order: Triax's launcher and torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open
// MPI's mpirun (OMPI_COMM_WORLD_...), Slurm's srun (SLURM_PROCID..., and SLURM_STEP_ID, because a batch script, which
// is not a rank, has the others too). A plain shell has none of these variables. Variables of a job of several ranks
// without the number of this rank are refused: the run would start once on each node.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "os/address.hpp"

namespace triax::launch {

enum class Launcher { triax, torchrun, open_mpi, slurm };
std::string_view name_of(Launcher launcher); // "torchrun"

struct Environment {
  Launcher launcher = Launcher::triax;
  int rank = 0, world = 1;
  int local_rank = 0, local_world = 1; // among the ranks of this machine; without LOCAL_WORLD_SIZE, local_world = world
  os::Address server;                  // of the job server; launch.port overrides its port
  std::string job = {};                // the launcher's identifier of the job; empty if it has none
  int launcher_process = 0;            // process id of Triax's launcher
  bool serves = false;                 // whether rank 0 runs the job server; else the launcher does
  std::string server_variable = {};    // that names the host of the server: "MASTER_ADDR"; empty: none that a user set
};

/// Returns the value of a variable, or null: std::getenv or a test's function.
using Variables = std::function<const char*(const char* name)>;

std::optional<Environment> find_environment(const Variables& variables);

} // namespace triax::launch
