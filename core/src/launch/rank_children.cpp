// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_children.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "triax/text.hpp"

namespace triax::launch {

std::vector<os::Variable> rank_variables(const os::Address& server, const control::JobToken& token, int rank,
                                         int world) {
  const std::string number = triax::to_text(rank), ranks = triax::to_text(world);
  return {{"RANK", number},
          {"LOCAL_RANK", number},
          {"WORLD_SIZE", ranks},
          {"LOCAL_WORLD_SIZE", ranks},
          {"MASTER_ADDR", server.host},
          {"MASTER_PORT", triax::to_text(server.port)},
          {"TRIAX_JOB_TOKEN", token.secret()},
          {"TRIAX_LAUNCHER", triax::to_text(getpid())}};
}

bool have_ended(std::vector<os::Child>& children, control::Server& server) {
  bool all = true;
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    os::Child& child = children[rank];
    const bool ended = child.ended();
    all &= ended;
    if (!ended) continue;
    const int status = child.status();
    if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0)
      server.fail({static_cast<int>(rank), true, os::how_it_ended(status)});
  }
  return all;
}

void pass_output(std::vector<os::Child>& children, int timeout_ms,
                 const std::function<void(int rank, const std::string& line)>& output) {
  std::vector<pollfd> outputs;
  for (const os::Child& child : children)
    if (child.output() >= 0) outputs.push_back({child.output(), POLLIN, 0});
  poll(outputs.data(), outputs.size(), timeout_ms);
  for (std::size_t rank = 0; rank < children.size(); ++rank)
    for (const std::string& line : children[rank].lines())
      if (output) output(static_cast<int>(rank), line);
}

} // namespace triax::launch
