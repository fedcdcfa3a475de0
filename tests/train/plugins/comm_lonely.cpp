// SPDX-License-Identifier: Apache-2.0
// comm-lonely: a communicator that requires one process per rank, for tests of preflight.
#include <triax/communicator.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_int("patience", "1", 0, 9, "of no effect: what a table may write of its own")};

class Lonely final : public CommBackend {
 public:
  CommTraits traits() const override { return {}; } // ranks: one_per_process
  Refusals supports(const CommRequest&) const override { return {}; }
  void start(Device&) override {}
  std::unique_ptr<Communicator> join(const Group& group, Store&, Deadline) override {
    throw Error("comm-lonely joins nobody", group.id);
  }
};

} // namespace

TRIAX_PLUGIN(triax::CommBackend, Lonely, "comm-lonely", "0.1.0", "one rank a process", kOptions)
