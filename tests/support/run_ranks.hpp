// SPDX-License-Identifier: Apache-2.0
// Runs `triax train` as a launcher does that starts one rank on each machine, so that ranks may share a GPU.
//
// Threads: one. Blocking: until all ranks have ended, each within 200 seconds. Errors: those of the shell.
#pragma once

#include <string>

#include "support/free_port.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"
#include "triax/text.hpp"

namespace triax::test {

/// Runs triax with `arguments` in `folder`, once for each rank. Status: not 0 if a rank fails. Text: the output of all
/// ranks.
inline Outcome run_ranks(const std::filesystem::path& folder, const std::string& arguments, int ranks) {
  std::string command = text(
      "cd '{}' && export WORLD_SIZE={} LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT={}; pids=; ",
      folder.string(), ranks, free_port());
  for (int rank = 0; rank < ranks; ++rank)
    command += text("RANK={} timeout -k 10 200 '{}' {} > out.{} 2>&1 & pids=\"$pids $!\"; ", rank,
                    (installation() / "bin/triax").string(), arguments, rank);
  command += "failed=0; for pid in $pids; do wait $pid || failed=1; done; exit $failed";
  Outcome out = run_command(command);
  for (int rank = 0; rank < ranks; ++rank) out.text += read_file(folder / text("out.{}", rank));
  return out;
}

} // namespace triax::test
