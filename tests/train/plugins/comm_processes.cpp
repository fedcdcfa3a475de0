// SPDX-License-Identifier: Apache-2.0
// comm-processes: a communicator that requires one process per rank, for tests of preflight.
#include <triax/communicator.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_int("retries", "1", 0, 9, "has no effect: an option for the tests of tables")};

class Processes final : public CommBackend {
 public:
  CommTraits traits() const override { return {}; } // ranks: one_per_process
  Refusals supports(const CommRequest&) const override { return {}; }
  void start(Device&) override { throw Error("comm-processes cannot start"); }
  std::unique_ptr<Communicator> join(const Group& group, Store&, Deadline) override {
    throw Error("comm-processes cannot join ranks", group.id);
  }
};

} // namespace

TRIAX_PLUGIN(triax::CommBackend, Processes, "comm-processes", "0.1.0", "requires one process per rank; cannot join",
             kOptions)
