// SPDX-License-Identifier: Apache-2.0
// The failure report of a run with several ranks: what failed first (a rank or the job server), where and why, and the
// positions of the other ranks.
//
// Threads: any. Blocking: write_failure() writes a file. Errors: write_failure() logs its errors instead of throwing,
// so that they do not hide the failure itself.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "control/server.hpp"
#include "triax/layout.hpp"
#include "triax/log.hpp"

namespace triax::launch {

inline constexpr std::string_view kLauncher = "launcher", kJobServer = "job server", kThisProcess = "process";

inline constexpr int kFailedStatus = 1;  // exit status of a process whose run failed
inline constexpr int kRefusedStatus = 2; // of one that has refused it
/// After a signal during the start: a first step that has ended is reported within this time.
inline constexpr std::chrono::milliseconds kFirstStepGrace{250};

/// Called once with the rank that failed first, and why; the rank is -1 if the job server was lost. `status`: the exit
/// status of this process, 128 + n if signal n ends it. Any thread. If a rank is stuck, called just before the process
/// is ended.
using OnFailure = std::function<void(int rank, const std::string& why, int status)>;

struct FailureFacts {
  const Layout& layout;
  control::Failure failure;
  std::vector<control::RankStatus> ranks; // last known states
  std::int64_t last_step = 0;             // the last step that rank 0 has recorded
  double seconds = 0;                     // from the failure to the end of the last rank, or of this process
  std::filesystem::path file = {};        // to write the report to (train/run_folder.hpp)
  std::string_view server = kLauncher;    // what failed if no rank did: what runs the job server, or kThisProcess
  control::Rejections rejections = {};    // of the job server
  std::string hint = {};                  // the next step, if the rank's log does not have it
  bool evaluates = false;                 // the run does not train
  bool generates = false;                 // it generates text
  bool is_ended = false;                  // this process is ended, because one of its ranks does not stop
};

/// The failure of ranks that did not join in time. It has the number of the first; its reason names all.
control::Failure not_joined(const std::vector<int>& missing, double limit_s);

/// "rank 2 (pipeline 1, data 0, tensor 0; host n7, pid 4211) was lost after step 117: killed by signal 9 (Killed)",
/// with its last known position and those of the others. The error of a rank that reported one is in its log. If no
/// rank failed: "launcher failed (no rank failed) after step 117: the job server did not run for 3.2 s ...".
std::string to_text(const FailureFacts& facts);

/// The same as JSON in `facts.file`. "failed" is "rank" or FailureFacts::server; "rank" is null if no rank failed.
void write_failure(const FailureFacts& facts, Log& log) noexcept;

} // namespace triax::launch
