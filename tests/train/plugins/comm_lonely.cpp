// comm-lonely: a communicator that wants each rank in a process of its own, for tests of what is asked before a run.
#include <triax/communicator.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

class Lonely final : public CommBackend {
 public:
  CommTraits traits() const override { return {}; } // ranks: one_per_process
  Support supports(const CommRequest&) const override { return Support::yes(); }
  void start(Device&) override {}
  std::unique_ptr<Communicator> join(const Group& group, Store&, Deadline) override {
    throw Error("comm-lonely joins nobody", group.id);
  }
};

} // namespace

TRIAX_PLUGIN(triax::CommBackend, Lonely, "comm-lonely", "0.1.0", "one rank a process", nullptr)
