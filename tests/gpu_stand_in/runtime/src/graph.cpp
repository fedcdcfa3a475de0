// SPDX-License-Identifier: Apache-2.0
// Launches of graphs.
#include <algorithm>

#include "capture.hpp"

namespace triax::gpu_stand_in {

namespace {

class GraphRun {
 public:
  GraphRun(std::shared_ptr<const Graph> graph, std::uint64_t random)
      : graph_(std::move(graph)), left_(graph_->nodes.size()), next_(graph_->nodes.size()), random_(random) {
    for (int n = 0; n < static_cast<int>(left_.size()); ++n) {
      const std::vector<int>& after = graph_->nodes[n].after;
      left_[n] = static_cast<int>(after.size());
      for (const int before : after) next_[before].push_back(n);
      if (after.empty()) ready_.push_back(n);
    }
  }

  // Starts what can start, and asks what runs. Returns whether all nodes are done.
  bool step() {
    while (!ready_.empty()) {
      const int node = choose();
      if (Poll poll = graph_->nodes[node].work.start()) {
        running_.emplace_back(node, std::move(poll));
      } else {
        finish(node);
      }
      poll_running();
    }
    poll_running();
    return ready_.empty() && running_.empty();
  }

 private:
  // Without a seed, the node that was captured last: a dependency that was forgotten has the most chances to show.
  int choose() {
    auto at = std::ranges::max_element(ready_);
    if (random_ != 0) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      at = ready_.begin() + static_cast<std::ptrdiff_t>((random_ >> 33) % ready_.size());
    }
    const int node = *at;
    ready_.erase(at);
    return node;
  }

  void finish(int node) {
    for (const int after : next_[node]) {
      if (--left_[after] == 0) ready_.push_back(after);
    }
  }

  void poll_running() {
    for (std::size_t n = 0; n < running_.size();) {
      if (!running_[n].second()) {
        ++n;
        continue;
      }
      finish(running_[n].first);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(n));
    }
  }

  std::shared_ptr<const Graph> graph_;
  std::vector<int> left_;              // nodes that a node still waits for
  std::vector<std::vector<int>> next_; // nodes that come after a node
  std::vector<int> ready_;
  std::vector<std::pair<int, Poll>> running_;
  std::uint64_t random_;
};

} // namespace

StreamWork graph_work(std::shared_ptr<const Graph> graph) {
  static std::atomic<std::uint64_t> launches = 0;
  return {"cudaGraphLaunch", [graph = std::move(graph)]() -> Poll {
            const std::uint64_t seed = seed_for("graph");
            auto run = std::make_shared<GraphRun>(graph, seed == 0 ? 0 : seed + 2 * ++launches);
            return [run] { return run->step(); };
          }};
}

} // namespace triax::gpu_stand_in
