// SPDX-License-Identifier: Apache-2.0
#include "mpi_process.hpp"

#include <array>
#include <atomic>
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

std::atomic<bool> must_not_finalize{false};

void finalize() {
  if (!must_not_finalize) MPI_Finalize();
}

void initialise() {
  int finalized = 0, initialised = 0;
  MPI_Finalized(&finalized);
  if (finalized)
    throw Error("MPI was finalized in this process, and cannot start again", "comm-mpi", "start a new process");
  MPI_Initialized(&initialised);
  if (initialised) return;
  // Open MPI replaces default handlers of crashes, which then name no rank and no plugin.
  ::setenv("OMPI_MCA_opal_signal", "", 0);
  int given = 0;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given); code != MPI_SUCCESS)
    throw Error(text("MPI_Init_thread: {}", error_text(code)), "comm-mpi", kStartHint);
  std::atexit(finalize); // without it, mpirun calls the end of a good run improper
  if (given < MPI_THREAD_SERIALIZED)
    throw Error("this MPI does not allow calls from the thread of a rank (MPI_THREAD_SERIALIZED)", "comm-mpi",
                "use an MPI that was built with threads");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); // else an error ends the process
}

MpiProcess describe() {
  MpiProcess out;
  MPI_Comm_rank(MPI_COMM_WORLD, &out.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &out.size);
  void* largest = nullptr;
  int is_set = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &is_set);
  if (is_set) out.tag_bits = std::bit_width(static_cast<unsigned>(*static_cast<int*>(largest)) + 1U) - 1;
  return out;
}

} // namespace

const MpiProcess& mpi_process(int world) {
  static const MpiProcess process = [] {
    initialise();
    return describe();
  }();
  if (process.size != world)
    throw Error(process.size == 1 ? text("MPI has started this process alone, and the run has {} ranks", world)
                                  : text("MPI has started {} processes, and the run has {} ranks", process.size, world),
                "comm-mpi", kStartHint);
  return process;
}

void leave_unfinalized() noexcept {
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
