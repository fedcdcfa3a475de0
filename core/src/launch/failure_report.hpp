// What is told when a run of several processes fails: which rank it was, where, why, and where the others stood.
//
// Threads: any. Ownership: values. Blocking: write_failure() writes a file. Errors: write_failure() has none: a report
// that cannot be written must not hide the failure itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "control/server.hpp"
#include "triax/layout.hpp"

namespace triax::launch {

struct FailureFacts {
  const Layout& layout;
  control::Failure failure;
  std::vector<control::RankStatus> ranks; // as last heard of
  std::int64_t last_step = 0;             // that all ranks had finished
  double seconds = 0;                     // from the failure to the end of the last rank
};

/// "rank 2 (pipeline 1, data 0, tensor 0; host n7, pid 4211) was lost after step 117: killed by signal 9 (Killed)",
/// where it was last heard of, and where the others stood. Of a rank that gave up, the error itself stands in its log.
std::string to_text(const FailureFacts& facts);

/// failure.json in the run's folder: the same for programs.
void write_failure(const FailureFacts& facts, const std::filesystem::path& folder);

} // namespace triax::launch
