// SPDX-License-Identifier: Apache-2.0
// comm-hang: a communicator that hangs on one rank, in the call that its options select. Calls of the other ranks
// finish only when they are aborted.
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <triax/communicator.hpp>
#include <triax/plugin.hpp>
#include <vector>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {option_int("rank", nullptr, 0, 1000, "the rank that hangs"),
                                     option_string("where", nullptr, "post|advance|join", "what never returns there")};

[[noreturn]] void hang() {
  for (;;) ::pause();
}

/// What calls of a communicator share with it.
struct Calls {
  std::atomic<bool> is_aborted{false};
  HostEvent done;
};

class Member final : public Communicator {
 public:
  Member(Group group, bool posts_hang, bool tasks_hang)
      : Communicator(std::move(group)), posts_hang_(posts_hang), tasks_hang_(tasks_hang) {}
  /// Reads the memory of all calls, as other ranks may until then.
  ~Member() override {
    for (const std::byte* bytes : memory_) sum_ = std::to_integer<int>(*static_cast<const volatile std::byte*>(bytes));
  }
  void barrier(Deadline) override {}
  void abort(std::string_view) noexcept override { calls_->is_aborted = true; }
  void progress() noexcept override {}

 private:
  /// Deletes itself: a stream may hold it for longer than the communicator lives.
  class Task final : public HostTask {
   public:
    Task(std::shared_ptr<Calls> calls, bool hangs) : calls_(std::move(calls)), hangs_(hangs) {}
    bool advance() noexcept override {
      if (hangs_) hang();
      if (!calls_->is_aborted) return false;
      calls_->done.fail("aborted");
      delete this;
      return true;
    }
    void dropped() noexcept override { delete this; }

   private:
    const std::shared_ptr<Calls> calls_;
    const bool hangs_;
  };

  Work post(Stream& stream, ActionId action) {
    if (posts_hang_) hang();
    const Event done = calls_->done.arm();
    stream.post(*new Task(calls_, tasks_hang_));
    return {done, action};
  }
  Work do_collective(const Collective&, const TensorView& in, const TensorView& out, Stream& stream,
                     ActionId action) override {
    memory_.insert(memory_.end(), {in.as<const std::byte>(), out.as<const std::byte>()});
    return post(stream, action);
  }
  Work do_exchange(std::span<const Transfer>, Stream& stream, ActionId action) override { return post(stream, action); }

  const bool posts_hang_, tasks_hang_;
  std::vector<const std::byte*> memory_;
  int sum_ = 0;
  const std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
};

class Hang final : public CommBackend {
 public:
  explicit Hang(const PluginContext& context)
      : where_(context.rank == context.options.integer("rank") ? context.options.text("where") : "") {}
  CommTraits traits() const override {
    CommTraits out;
    out.ranks = CommTraits::Ranks::many_per_process;
    return out;
  }
  Refusals supports(const CommRequest&) const override { return {}; }
  void start(Device&) override {}
  std::unique_ptr<Communicator> join(const Group& group, Store&, Deadline) override {
    if (where_ == "join") hang();
    return std::make_unique<Member>(group, where_ == "post", where_ == "advance");
  }

 private:
  const std::string where_;
};

} // namespace

TRIAX_PLUGIN(triax::CommBackend, Hang, "comm-hang", "0.1.0", "hangs on one rank", kOptions)
