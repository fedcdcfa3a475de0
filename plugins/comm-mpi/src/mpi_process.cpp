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

bool owned = false; // this plugin has initialised MPI
bool must_not_finalize = false;
bool is_abandoned = false;
int users = 0;

void require_threads(int given) {
  if (given < MPI_THREAD_SERIALIZED)
    throw Error(
        "this MPI does not support MPI_THREAD_SERIALIZED, which calls from the threads of ranks need", "comm-mpi",
        "use an MPI that was built with threads; a program that initialises MPI itself must call MPI_Init_thread");
}

void initialise() {
  int is_finalized = 0, is_initialised = 0, given = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized)
    throw Error("MPI was finalized in this process and cannot start again", "comm-mpi", "start a new process");
  MPI_Initialized(&is_initialised);
  if (is_initialised) {
    MPI_Query_thread(&given);
    return require_threads(given);
  }
  // Otherwise Open MPI installs crash handlers. Triax keeps handlers of other libraries, so a crash report would name
  // neither rank nor plugin.
  ::setenv("OMPI_MCA_opal_signal", "", 0);
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given); code != MPI_SUCCESS)
    throw Error(text("MPI_Init_thread: {}", error_text(code)), "comm-mpi", kStartHint);
  owned = true;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); // else an error ends the process
}

/// mpirun reports a process that exits without MPI_Finalize as failed.
void finalize_if_unused() noexcept {
  if (users > 0 || !owned || must_not_finalize) return;
  owned = false;
  MPI_Finalize();
}

} // namespace

MpiProcess::MpiProcess(int world) {
  try {
    initialise();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    check(world);
  } catch (...) {
    finalize_if_unused();
    throw;
  }
  void* largest = nullptr;
  int is_set = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &is_set);
  if (is_set) tag_bits_ = std::bit_width(static_cast<unsigned>(*static_cast<int*>(largest)) + 1U) - 1;
  if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &comm_); code != MPI_SUCCESS) {
    leave_unfinalized(); // the other ranks may have the communicator
    throw Error(text("MPI_Comm_dup: {}", error_text(code)), "comm-mpi", kStartHint);
  }
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  ++users;
}

void MpiProcess::check(int world) const {
  if (is_abandoned)
    throw Error("MPI cannot be used any more in this process: a group of comm-mpi was aborted", "comm-mpi",
                "start a new process");
  if (size_ == world) return;
  throw Error(text("MPI started {} process{}, but the run has {} rank{}", size_, size_ == 1 ? "" : "es", world,
                   world == 1 ? "" : "s"),
              "comm-mpi", kStartHint);
}

MpiProcess::~MpiProcess() {
  --users;
  if (!must_not_finalize) MPI_Comm_free(&comm_);
  finalize_if_unused();
}

void MpiProcess::leave_unfinalized() noexcept {
  must_not_finalize = true;
}

void MpiProcess::abandon() noexcept {
  is_abandoned = must_not_finalize = true;
}

bool MpiProcess::abandoned() noexcept {
  return is_abandoned;
}

int error_class(int code) noexcept {
  int out = code;
  MPI_Error_class(code, &out);
  return out;
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
