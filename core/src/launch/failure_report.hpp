// SPDX-License-Identifier: Apache-2.0
// The report of a run of several processes that failed: which rank, or its launcher, where, why, and where the others
// were.
//
// Threads: any. Ownership: values. Blocking: write_failure() writes a file. Errors: write_failure() throws none,
// since a report that cannot be written must not hide the failure itself: it says so in the log.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "control/server.hpp"
#include "triax/layout.hpp"
#include "triax/log.hpp"

namespace triax::launch {

inline constexpr std::string_view kLauncher = "launcher", kJobServer = "job server";

/// Told once which rank failed first, and why; the rank is -1 where the job's server was lost. Called on any thread,
/// and where a rank is stuck just before the process is ended.
using OnFailure = std::function<void(int rank, const std::string& why)>;

struct FailureFacts {
  const Layout& layout;
  control::Failure failure;
  std::vector<control::RankStatus> ranks; // as last heard of
  std::int64_t last_step = 0;             // that all ranks had finished
  double seconds = 0;                     // from the failure to the end of the last rank, or of this process
  std::filesystem::path file = {};        // of the report (train/run_folder.hpp)
  std::string_view server = kLauncher;    // what runs the job's server: it failed where the failure names no rank
  control::Rejections rejections = {};    // by the server
  bool is_ended = false;                  // this process, with a rank of it that does not stop
};

/// The failure of ranks that did not join in time: the first of them failed, and all are named.
control::Failure not_joined(const std::vector<int>& missing, double limit_s);

/// "rank 2 (pipeline 1, data 0, tensor 0; host n7, pid 4211) was lost after step 117: killed by signal 9 (Killed)",
/// where it was last heard of, and where the others were. The error of a rank that gave up is in its log. Where no rank
/// failed: "launcher, not a rank, failed after step 117: the job server did not run for 3.2 s ...".
std::string to_text(const FailureFacts& facts);

/// The same for programs, as JSON in `facts.file`. "who" is "rank" or FailureFacts::server; "rank" is null where it is
/// not a rank.
void write_failure(const FailureFacts& facts, Log& log) noexcept;

} // namespace triax::launch
