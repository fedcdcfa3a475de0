// SPDX-License-Identifier: Apache-2.0
#include "mpi_process.hpp"

#include <array>
#include <bit>
#include <cstdlib>
#include <map>
#include <string>

#include "triax/error.hpp"

namespace triax::comm_mpi {

namespace {

constexpr const char* kStartHint =
    "start the ranks with mpirun, with srun --mpi=pmix, or with triax train alone, whose own launcher starts them for "
    "MPI";

bool must_not_finalize = false;
int users = 0;

void initialise() {
  int is_finalized = 0, is_initialised = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized)
    throw Error("MPI was finalized in this process, and cannot start again", "comm-mpi", "start a new process");
  MPI_Initialized(&is_initialised);
  if (is_initialised) return;
  // Open MPI replaces default handlers of crashes, which then name no rank and no plugin.
  ::setenv("OMPI_MCA_opal_signal", "", 0);
  int given = 0;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given); code != MPI_SUCCESS)
    throw Error(text("MPI_Init_thread: {}", error_text(code)), "comm-mpi", kStartHint);
  if (given < MPI_THREAD_SERIALIZED)
    throw Error("this MPI does not allow calls from the thread of a rank (MPI_THREAD_SERIALIZED)", "comm-mpi",
                "use an MPI that was built with threads");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); // else an error ends the process
}

} // namespace

MpiProcess::MpiProcess(int world) {
  initialise();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  if (size_ != world)
    throw Error(size_ == 1 ? text("MPI has started this process alone, and the run has {} ranks", world)
                           : text("MPI has started {} processes, and the run has {} ranks", size_, world),
                "comm-mpi", kStartHint);
  void* largest = nullptr;
  int is_set = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &is_set);
  if (is_set) tag_bits_ = std::bit_width(static_cast<unsigned>(*static_cast<int*>(largest)) + 1U) - 1;
  ++users;
}

/// An end without MPI_Finalize is a failure for mpirun.
MpiProcess::~MpiProcess() {
  if (--users == 0 && !must_not_finalize) MPI_Finalize();
}

void MpiProcess::leave_unfinalized() noexcept {
  must_not_finalize = true;
}

const char* error_text(int code) noexcept {
  static std::map<int, std::string> texts; // a failed operation refers to its text
  const auto [entry, is_new] = texts.try_emplace(code);
  if (is_new) {
    std::array<char, MPI_MAX_ERROR_STRING + 1> buffer{};
    int length = 0;
    const bool known = MPI_Error_string(code, buffer.data(), &length) == MPI_SUCCESS;
    entry->second = known ? std::string(buffer.data(), static_cast<std::size_t>(length)) : text("error {}", code);
  }
  return entry->second.c_str();
}

} // namespace triax::comm_mpi
