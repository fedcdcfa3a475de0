// SPDX-License-Identifier: Apache-2.0
// Calls of step(): which shards, when it begins, what memory it uses, and dry runs.
#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "dry_run_stepper.hpp"
#include "optimizer_check_tables.hpp"
#include "os/errno_text.hpp"

namespace triax::conformance {

namespace {

using Calls = std::vector<std::vector<std::size_t>>; // indices of shards, by call

std::vector<ParameterShard> some_shards(const Stepper& stepper, const std::vector<std::size_t>& indices) {
  std::vector<ParameterShard> out;
  for (const std::size_t index : indices) out.push_back(stepper.shards()[index]);
  return out;
}

/// Stages in both orders, every shard alone, and subsets that are not consecutive.
void any_shards_in_a_call(const OptimizerSubject& subject, Report& report) {
  static const Calls kSplits[] = {
      {{0, 1, 2}, {3, 4}}, {{3, 4}, {0, 1, 2}}, {{0}, {1}, {2}, {3}, {4}}, {{0, 2, 4}, {1, 3}}};
  for_types(subject, [&](const StepTypes& types) {
    Stepper at_once(subject, types);
    at_once.steps(3);
    const Tensors expected = at_once.tensors();
    for (const Calls& split : kSplits) {
      Stepper stepper(subject, types);
      for (int i = 0; i < 3; ++i) {
        stepper.begin_step({});
        for (const std::vector<std::size_t>& call : split) stepper.call(some_shards(stepper, call));
      }
      expect_equal(report, types, text("with {} calls in a step", split.size()), stepper.tensors(), expected);
    }
  });
}

void other_shards_do_not_change(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    Stepper stepper(subject, types);
    stepper.steps(2);
    for (std::size_t called = 0; called < stepper.shards().size(); ++called) {
      std::vector<Tensors> before;
      for (std::size_t i = 0; i < stepper.shards().size(); ++i) before.push_back(stepper.tensors_of(i));
      stepper.begin_step({});
      stepper.call(stepper.shards().subspan(called, 1));
      for (std::size_t i = 0; i < before.size(); ++i)
        if (i != called)
          expect_equal(report, types, text("after a call with {} only", stepper.shards()[called].name),
                       stepper.tensors_of(i), before[i]);
    }
  });
}

Tensors gradients_of(const Stepper& stepper) {
  Tensors out;
  for (const ParameterShard& shard : stepper.shards())
    out[text("the gradient of {}", shard.name)] = bytes_of_tensor(shard.gradient);
  return out;
}

void writes_only_its_tensors(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    for (int index = 0; index < 3; ++index) {
      Stepper stepper(subject, types, parts_of_shard(index, 3));
      const StepScalars before = (stepper.begin_step({}), stepper.scalars());
      const Tensors gradients = gradients_of(stepper);
      stepper.call(stepper.shards());
      expect_equal(report, types, "a step writes gradients", gradients_of(stepper), gradients);
      for (const std::string& name : stepper.overwritten())
        report.fail(text("{}: a step writes beside the memory of {}", to_text(types), name));
      const StepScalars& after = stepper.scalars();
      report.expect(after.lr == before.lr && after.clip == before.clip && after.skip == before.skip &&
                        after.step == before.step && after.loss_scale == before.loss_scale &&
                        after.grad_norm == before.grad_norm && after.good_steps == before.good_steps &&
                        after.hysteresis == before.hysteresis,
                    "{}: a step writes StepScalars", to_text(types));
    }
  });
}

/// Writes the gradients and the scalars, and fires the event that the stream waits for, in the third round of the
/// progress loop. Until then, the scalars are those of a skipped step.
class LateGradients final : public ProgressSource {
 public:
  LateGradients(Stepper& stepper, HostEvent& blocker)
      : stepper_(stepper), blocker_(blocker), scalars_(stepper.scalars()) {
    stepper.fill_gradients(7);
    stepper.scalars() = {.lr = 7, .clip = 7, .skip = 1};
  }
  void progress() noexcept override {
    if (++rounds_ == 3) open();
  }
  void open() noexcept {
    if (is_open_) return;
    is_open_ = true;
    stepper_.scalars() = scalars_;
    stepper_.put_gradients(1);
    blocker_.fire();
  }

 private:
  Stepper& stepper_;
  HostEvent& blocker_;
  const StepScalars scalars_;
  int rounds_ = 0;
  bool is_open_ = false;
};

void begins_after_the_stream(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    Stepper expected(subject, types), stepper(subject, types);
    expected.step();
    HostEvent blocker;
    stepper.begin_step({});
    LateGradients late(stepper, blocker);
    stepper.stream().wait(blocker.arm());
    stepper.device().add_source(late);
    stepper.call(stepper.shards());
    late.open();
    stepper.stream().ready();
    stepper.device().remove_source(late);
    expect_equal(report, types, "if earlier work of the stream writes gradients and scalars", stepper.tensors(),
                 expected.tensors());
  });
}

void overwritten_between_calls(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    Stepper expected(subject, types), stepper(subject, types);
    expected.steps(3);
    for (int i = 0; i < 3; ++i) {
      stepper.fill_scratch(std::byte{0xFF}); // NaN in every type
      stepper.step();
      stepper.fill_gradients(std::numeric_limits<double>::quiet_NaN());
    }
    expect_equal(report, types, "if gradients and scratch memory are overwritten between calls", stepper.tensors(),
                 expected.tensors());
  });
}

std::string unless_counted(const OptimizerSubject& subject) {
  return subject.allocations ? "" : "allocations are not counted in this program";
}

void steps_do_not_allocate(const OptimizerSubject& subject, Report& report) {
  constexpr int kCounted = 5;
  for_types(subject, [&](const StepTypes& types) {
    Stepper stepper(subject, types);
    stepper.steps(3);
    std::size_t allocated = 0;
    for (int i = 0; i < kCounted; ++i) {
      stepper.begin_step({});
      const std::size_t before = subject.allocations();
      stepper.call(stepper.shards().first(kFirstStage));
      stepper.call(stepper.shards().subspan(kFirstStage));
      allocated += subject.allocations() - before;
    }
    report.expect(allocated == 0, "{}: {} allocations in {} steps, after 3 steps", to_text(types), allocated, kCounted);
  });
}

/// Memory that cannot be read or written: an access ends the check's process with SIGSEGV.
class InaccessibleMemory {
 public:
  explicit InaccessibleMemory(std::size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw Error(text("cannot map memory for a check: {}", errno_text()));
  }
  InaccessibleMemory(const InaccessibleMemory&) = delete;
  InaccessibleMemory& operator=(const InaccessibleMemory&) = delete;
  ~InaccessibleMemory() { munmap(data_, bytes_); }
  void* data() const { return data_; }

 private:
  void* data_;
  std::size_t bytes_;
};

constexpr std::size_t kMaxTensorBytes = std::size_t{1} << 20; // bytes, of the fixed parameters in every type

void dry_run_calls_the_same(const OptimizerSubject& subject, Report& report) {
  const InaccessibleMemory memory(kMaxTensorBytes);
  for_types(subject, [&](const StepTypes& types) {
    Stepper stepper(subject, types);
    DryRunKernels dry_kernels(stepper.kernels());
    DryRunStepper(stepper, {.scalars = memory.data()}).step(dry_kernels);
    stepper.step();
    for (std::size_t i = 0; i < KernelSet::kOps; ++i) {
      const Op op = static_cast<Op>(i);
      const std::uint64_t in_dry_run = dry_kernels.calls(op), in_step = stepper.kernels().calls(op);
      report.expect(in_dry_run == in_step, "{}: a dry run calls {} {} times, but a step {} times", to_text(types),
                    name_of(op), in_dry_run, in_step);
    }
  });
}

void leaves_device_memory_to_kernels(const OptimizerSubject& subject, Report&) {
  const InaccessibleMemory memory(kMaxTensorBytes);
  const Object<Optimizer> optimizer = make_optimizer(subject);
  for (const DeviceKind device : {DeviceKind::cuda, DeviceKind::sim})
    for (const DType master : accepted_types(subject)) {
      if (!optimizer->supports({master, device}).empty()) continue;
      Stepper stepper(subject, {master, {}});
      DryRunKernels dry_kernels(stepper.kernels());
      DryRunStepper(stepper, {.device = device, .data = memory.data(), .scalars = memory.data()}).step(dry_kernels);
    }
}

constexpr OptimizerCheck kCallChecks[] = {
    {"Step.TakesAnyShardsInACall", "O5", nullptr, any_shards_in_a_call},
    {"Step.LeavesOtherShards", "O5", nullptr, other_shards_do_not_change},
    {"Step.WritesOnlyItsTensors", "O12", nullptr, writes_only_its_tensors},
    {"Step.BeginsAfterItsStream", "O13", nullptr, begins_after_the_stream},
    {"Step.KeepsNothingInGradientsAndScratch", "O14", nullptr, overwritten_between_calls},
    {"SteadyState.DoesNotAllocate", "O15", unless_counted, steps_do_not_allocate},
    {"DryRun.CallsTheSameOperations", "O16", nullptr, dry_run_calls_the_same},
    {"Device.MemoryIsAccessedByKernelsOnly", "O17", nullptr, leaves_device_memory_to_kernels},
};

} // namespace

std::span<const OptimizerCheck> call_checks() {
  return kCallChecks;
}

} // namespace triax::conformance
