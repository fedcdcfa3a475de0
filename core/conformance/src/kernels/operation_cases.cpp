// SPDX-License-Identifier: Apache-2.0
// Runs a case of an operation on a kernel set, and compares results.
#include "triax/conformance/operation_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "case_memory.hpp"
#include "formulas.hpp"
#include "triax/error.hpp"

namespace triax::conformance::cases {

namespace {

constexpr std::size_t kMaxPoisoned = std::size_t{8} << 20; // bytes of scratch; only a library's workspace is larger
constexpr double kWaitSeconds = 600;

std::uint32_t hash(const std::string& text) {
  std::uint32_t value = 2166136261u; // FNV-1a: the same values on every machine
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 16777619u;
  return value;
}

class CaseRunner {
 public:
  CaseRunner(KernelSet& set, Device& device, const OperationCase& one, const CaseSetup& setup)
      : set_(set), device_(device), one_(one), setup_(setup), stream_(device.make_stream("case")) {}

  CaseRun run() {
    CaseViews views;
    memory_.reserve(one_.tensors.size());
    for (const CaseTensor& tensor : one_.tensors) {
      CaseMemory& memory = memory_.emplace_back(one_, tensor, setup_);
      memory.upload(device_, *stream_);
      views.set(tensor.name, memory.view());
    }
    finish();
    one_.build(views, UseCall([&](const OpCall& call) { plan(call); }));
    if (!run_.refusals.empty()) return std::move(run_);
    begin();
    one_.build(views, UseCall([&](const OpCall& call) { issue(call); }));
    if (setup_.late_inputs) blocker_.fire();
    finish();
    check_scratch();
    for (CaseMemory& memory : memory_) collect(memory);
    return std::move(run_);
  }

 private:
  struct Scratch {
    Op op;
    std::unique_ptr<Memory> memory;
    std::size_t bytes;
    std::byte* data() const { return static_cast<std::byte*>(memory->data()) + kGuard; }
  };

  void finish() { device_.wait(stream_->record(), deadline_in(kWaitSeconds)); }

  void plan(const OpCall& call) {
    if (!run_.refusals.empty()) return;
    run_.refusals = set_.supports(call);
    if (!run_.refusals.empty()) return;
    Scratch scratch{call.op, nullptr, set_.scratch_bytes(call)};
    scratch.memory = device_.allocate(scratch.bytes + 2 * kGuard, MemoryKind::device);
    device_.fill(bytes_at(scratch.memory->data(), kGuard), kPoisonValue, *stream_);
    device_.fill(bytes_at(scratch.data() + scratch.bytes, kGuard), kPoisonValue, *stream_);
    // The GPU stand-in reports reads of memory that nothing wrote.
    if (!device_.description().starts_with("GPU stand-in"))
      device_.fill(bytes_at(scratch.data(), std::min(scratch.bytes, kMaxPoisoned)),
                   setup_.zero_scratch ? 0 : kPoisonValue, *stream_);
    set_.prepare(call);
    scratch_.push_back(std::move(scratch));
  }

  void begin() {
    if (!setup_.late_inputs) return;
    stream_->wait(blocker_.arm());
    for (CaseMemory& memory : memory_) memory.move_late_inputs(device_, *stream_);
  }

  void issue(const OpCall& call) {
    const Scratch& scratch = scratch_[issued_++];
    const OpContext context{*stream_, {scratch.data(), scratch.bytes}};
    if (setup_.issue) return setup_.issue(call, context);
    set_.issue(call, context);
  }

  void check_scratch() {
    for (const Scratch& scratch : scratch_) {
      std::vector<std::byte> guards(2 * kGuard);
      device_.download(bytes_at(guards.data(), kGuard), bytes_at(scratch.memory->data(), kGuard), *stream_);
      device_.download(bytes_at(guards.data() + kGuard, kGuard), bytes_at(scratch.data() + scratch.bytes, kGuard),
                       *stream_);
      finish();
      if (std::ranges::all_of(guards, [](std::byte value) { return value == kPoison; })) continue;
      run_.scratch_overruns.push_back(text("{} with {} bytes", name_of(scratch.op), scratch.bytes));
    }
  }

  void collect(CaseMemory& memory) {
    memory.download(device_, *stream_);
    finish();
    const CaseTensor& tensor = memory.tensor();
    if (tensor.role != Role::in) run_.results[tensor.name] = memory.values();
    if (memory.is_written_beside())
      (tensor.role == Role::in ? run_.inputs_written : run_.written_beside).push_back(tensor.name);
  }

  KernelSet& set_;
  Device& device_;
  const OperationCase& one_;
  const CaseSetup& setup_;
  HostEvent blocker_; // outlives the stream
  std::unique_ptr<Stream> stream_;
  std::vector<CaseMemory> memory_;
  std::vector<Scratch> scratch_;
  std::size_t issued_ = 0;
  CaseRun run_;
};

constexpr double kTolerance32 = 1e-5; // of f32

/// The tolerance of a tensor in a case with this tolerance: integers are compared exactly. Master weights and state of
/// an update have the master type in every case, and depend on tensors of that type only.
double tolerance_in(const OperationCase& one, Op op, const std::string& name, double tolerance) {
  const auto found = std::ranges::find(one.tensors, name, &CaseTensor::name);
  if (found == one.tensors.end()) return tolerance;
  if (found->kind == Kind::own && !is_floating(found->dtype)) return 0;
  const bool is_update = op == Op::adamw || op == Op::sgd || op == Op::multi_adamw;
  return is_update && found->kind == Kind::statistic ? std::min(tolerance, kTolerance32) : tolerance;
}

/// Whether all outputs are f32 numbers that exist before the call, such as gradients in training with 16 bits.
bool writes_wide_targets_only(const OperationCase& one) {
  return std::ranges::all_of(one.tensors, [](const CaseTensor& tensor) {
    return tensor.role == Role::in || (tensor.role == Role::in_out && tensor.kind != Kind::data);
  });
}

std::string compare_tensor(const std::string& name, const std::vector<double>& got, const std::vector<double>& want,
                           double tolerance) {
  double magnitude = 0;
  for (const double value : want)
    if (std::isfinite(value)) magnitude = std::max(magnitude, std::abs(value));
  const double allowed = tolerance * (magnitude > 0 ? magnitude : 1);
  std::size_t wrong = 0, worst = 0;
  double largest = -1;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (got[i] == want[i]) continue; // also equal infinities
    const double difference = std::abs(got[i] - want[i]);
    if (difference <= allowed) continue;
    ++wrong;
    const double ranked = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
    if (ranked > largest) {
      largest = ranked;
      worst = i;
    }
  }
  if (wrong == 0) return {};
  return text("{}: {} of {} elements differ by more than {}; element {} is {}, must be {}", name, wrong, want.size(),
              allowed, worst, got[worst], want[worst]);
}

} // namespace

DType type_of(const CaseTensor& tensor, DType dtype) {
  if (tensor.kind == Kind::data) return dtype;
  if (tensor.kind == Kind::statistic) return dtype == DType::f64 ? DType::f64 : DType::f32;
  return tensor.dtype;
}

std::vector<double> values_of(const OperationCase& one, const CaseTensor& tensor) {
  if (!tensor.values.empty()) return tensor.values;
  std::vector<double> values(static_cast<std::size_t>(tensor.shape.elements()));
  const PhiloxKey key = philox_key(hash(one.name), RandomPurpose::test);
  const std::uint32_t site = hash(tensor.name);
  PhiloxBlock block{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 4 == 0) block = philox_at(key, i, site, 0);
    values[i] = tensor.low + (tensor.high - tensor.low) * uniform(block[i % 4]);
  }
  return values;
}

void plan_case(const OperationCase& one, const std::function<void(const OpCall&)>& use) {
  CaseViews views;
  for (const CaseTensor& tensor : one.tensors) {
    std::array<std::int64_t, kMaxRank> strides{};
    std::int64_t step = 1;
    for (int dim = tensor.shape.rank() - 1; dim >= 0; --dim) {
      strides[static_cast<std::size_t>(dim)] = step;
      step *= tensor.shape[dim] + (dim == tensor.shape.rank() - 1 ? tensor.padding : 0);
    }
    views.set(tensor.name, {nullptr, type_of(tensor, one.dtype), tensor.shape, strides});
  }
  one.build(views, UseCall(use));
}

Op op_of(const OperationCase& one) {
  Op last = Op::gemm;
  plan_case(one, [&](const OpCall& call) { last = call.op; });
  return last;
}

double cost_of(const OperationCase& one) {
  double cost = 0;
  for (const CaseTensor& tensor : one.tensors) cost += static_cast<double>(tensor.shape.elements());
  plan_case(one, [&](const OpCall& call) { cost += call.flops; });
  return cost;
}

CaseRun observe_case(KernelSet& set, Device& device, const OperationCase& one, const CaseSetup& setup) {
  return CaseRunner(set, device, one, setup).run();
}

CaseResults run_case(KernelSet& set, Device& device, const OperationCase& one, DType dtype, std::int64_t shift) {
  CaseSetup setup;
  setup.dtype = dtype;
  setup.shift = shift;
  CaseRun run = observe_case(set, device, one, setup);
  const auto require_none = [&](const std::vector<std::string>& names, const char* what) {
    if (!names.empty()) throw Error(text("{}: {} {}", one.name, names.front(), what));
  };
  if (!run.refusals.empty()) throw Error(text("{} is refused: {}", one.name, run.refusals.front().message));
  require_none(run.scratch_overruns, "of scratch writes beside it");
  require_none(run.inputs_written, "is an input and was written");
  require_none(run.written_beside, "was written beside its view");
  return std::move(run.results);
}

CaseResults formula_results(const OperationCase& one) {
  const auto host = make_host_device();
  Formulas formulas;
  return run_case(formulas, *host, one, DType::f64);
}

double tolerance_of(const OperationCase& one) {
  if (op_of(one) == Op::sum_squares) return 1e-12; // exact products of narrower types, added in double
  if (one.dtype == DType::f64) return 1e-12;
  if (one.dtype == DType::f32 || writes_wide_targets_only(one)) return kTolerance32;
  const double rounding = one.dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
  return one.name.starts_with("attention") ? 16 * rounding : 4 * rounding;
}

std::string differences(const OperationCase& one, const CaseResults& got, const CaseResults& want, double tolerance) {
  std::string out;
  const Op op = op_of(one);
  for (const auto& [name, values] : want) {
    const std::string differs = compare_tensor(name, got.at(name), values, tolerance_in(one, op, name, tolerance));
    if (!differs.empty()) out += (out.empty() ? "" : "; ") + differs;
  }
  return out;
}

std::string compare(KernelSet& tested, Device& device, const OperationCase& one, double tolerance, std::int64_t shift) {
  return differences(one, run_case(tested, device, one, one.dtype, shift), formula_results(one), tolerance);
}

CaseTensor scalars_tensor(const StepScalars& scalars) {
  CaseTensor tensor{
      .name = "scalars", .shape = {static_cast<std::int64_t>(sizeof scalars)}, .kind = Kind::own, .dtype = DType::u8};
  unsigned char bytes[sizeof scalars];
  std::memcpy(bytes, &scalars, sizeof scalars);
  tensor.values.assign(std::begin(bytes), std::end(bytes));
  return tensor;
}

std::vector<OperationCase> operation_cases(DType dtype) {
  std::vector<OperationCase> all = primitive_cases(dtype);
  for (OperationCase& one : fused_cases(dtype)) all.push_back(std::move(one));
  return all;
}

} // namespace triax::conformance::cases
