// SPDX-License-Identifier: Apache-2.0
// What a launcher told this process: which rank it is, of how many, and where rank 0 is found.
//
// Threads: any. Ownership: values. Blocking: never. Errors: Error naming the variable that is missing, contradicts
// another or cannot be read; its hint says what to set.
//
// Asked in this order: Triax's own launcher and torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open
// MPI's mpirun (OMPI_COMM_WORLD_...), Slurm's srun (SLURM_PROCID..., and SLURM_STEP_ID: a batch script has the others
// too, and is not one of the ranks). A plain shell has none of them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "control/address.hpp"

namespace triax::launch {

enum class Launcher { triax, torchrun, open_mpi, slurm };
std::string_view name_of(Launcher launcher); // "torchrun"

struct Environment {
  Launcher launcher = Launcher::triax;
  int rank = 0, world = 1;
  int local_rank = 0, local_world = 1; // among the ranks of this machine; LOCAL_WORLD_SIZE not told: all may be here
  control::Address server;             // of the job's server; launch.port, where it is given, goes before this port
  bool serves = false;                 // rank 0 runs it itself; else the launcher does
};

/// A variable's value, or null: std::getenv, or a test's.
using Variables = std::function<const char*(const char* name)>;

std::optional<Environment> find_environment(const Variables& variables);

} // namespace triax::launch
