// SPDX-License-Identifier: Apache-2.0
// Runs a case of an operation on a kernel set, and compares two sets.
#include "support/operation_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/gpu_stand_in.hpp"

namespace triax::test {

namespace {

constexpr std::size_t kGuard = 256;                     // bytes around each tensor; keeps an arena's alignment
constexpr int kPoison = 0xFF;                           // a NaN in every floating type
constexpr std::size_t kPoisoned = std::size_t{8} << 20; // bytes of scratch; only a library's workspace is larger

std::uint32_t hash(const std::string& text) {
  std::uint32_t value = 2166136261u; // FNV-1a: the same values on every machine
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 16777619u;
  return value;
}

DType type_of(const CaseTensor& tensor, DType dtype) {
  if (tensor.kind == Kind::data) return dtype;
  if (tensor.kind == Kind::statistic) return dtype == DType::f64 ? DType::f64 : DType::f32;
  return tensor.dtype;
}

std::vector<double> values_of(const OperationCase& one, const CaseTensor& tensor) {
  if (!tensor.values.empty()) return tensor.values;
  std::vector<double> values(static_cast<std::size_t>(tensor.shape.elements()));
  const PhiloxKey key = philox_key(hash(one.name), RandomPurpose::test);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double unit = uniform(philox_at(key, i, hash(tensor.name), 0)[i % 4]);
    values[i] = tensor.low + (tensor.high - tensor.low) * unit;
  }
  return values;
}

/// A tensor's memory and its copy on the host: guard, view, guard.
struct Block {
  DType dtype;
  std::vector<std::byte> bytes, expected;
  std::unique_ptr<Memory> memory;
  const CaseTensor* tensor;
  std::int64_t shift; // in elements

  /// Tensors of bytes hold a struct, which needs its alignment, so they are not shifted.
  std::size_t before() const {
    return kGuard + (dtype == DType::u8 ? 0 : static_cast<std::size_t>(shift) * bytes_of(dtype));
  }
  TensorView view(void* base) const {
    const Shape& shape = tensor->shape;
    std::array<std::int64_t, kMaxRank> strides{};
    std::int64_t step = 1;
    for (int dim = shape.rank() - 1; dim >= 0; --dim) {
      strides[static_cast<std::size_t>(dim)] = step;
      step *= shape[dim] + (dim == shape.rank() - 1 ? tensor->padding : 0);
    }
    return {static_cast<std::byte*>(base) + before(), dtype, shape, strides};
  }
};

class Runner {
 public:
  Runner(KernelSet& set, Device& device, const OperationCase& one, DType dtype, std::int64_t shift)
      : set_(set), device_(device), one_(one), dtype_(dtype), shift_(shift), stream_(device.make_stream("case")) {}

  CaseResults run() {
    for (const CaseTensor& tensor : one_.tensors) place(tensor);
    one_.build(views_, UseCall([&](const OpCall& call) { issue(call); }));
    CaseResults results;
    for (Block& block : blocks_) collect(block, results);
    return results;
  }

 private:
  TensorView raw(void* data, std::size_t bytes) { return {data, DType::u8, {static_cast<std::int64_t>(bytes)}}; }
  void finish() { device_.wait(stream_->record(), deadline_in(60)); }

  void place(const CaseTensor& tensor) {
    Block& block = blocks_.emplace_back(Block{type_of(tensor, dtype_), {}, {}, nullptr, &tensor, shift_});
    const std::int64_t last = tensor.shape.rank() == 0 ? 1 : tensor.shape[-1];
    const std::int64_t rows = last == 0 ? 0 : tensor.shape.elements() / last;
    const std::size_t inner = static_cast<std::size_t>(rows * (last + tensor.padding)) * bytes_of(block.dtype);
    block.bytes.assign(block.before() + inner + kGuard, std::byte{kPoison});
    if (tensor.role != Role::out) write(block);
    block.expected = block.bytes;
    block.memory = device_.allocate(block.bytes.size(), MemoryKind::device);
    device_.upload(raw(block.memory->data(), block.bytes.size()), raw(block.bytes.data(), block.bytes.size()),
                   *stream_);
    finish();
    views_.set(tensor.name, block.view(block.memory->data()));
  }

  /// Writes the values, rounded to the case's type: the reference in f64 gets the same inputs as the tested set.
  void write(Block& block) {
    std::vector<double> values = values_of(one_, *block.tensor);
    const DType narrow = type_of(*block.tensor, one_.dtype);
    std::vector<std::byte> rounded(values.size() * bytes_of(narrow));
    const TensorView from(values.data(), DType::f64, block.tensor->shape);
    const TensorView through(rounded.data(), narrow, block.tensor->shape);
    host_->convert(through, from, *host_stream_);
    host_->convert(block.view(block.bytes.data()), through, *host_stream_);
  }

  void issue(const OpCall& call) {
    if (const Refusals answer = set_.supports(call); !answer.empty()) {
      throw Error(text("{}: {} is refused: {}", one_.name, name_of(call.op), answer.front().message));
    }
    const std::size_t bytes = set_.scratch_bytes(call);
    const auto scratch = device_.allocate(bytes + kGuard, MemoryKind::device);
    auto* const first = static_cast<std::byte*>(scratch->data());
    // On the GPU stand-in, a read of scratch that nothing wrote is an error.
    if (!is_gpu_stand_in(device_)) device_.fill(raw(first, std::min(bytes, kPoisoned)), kPoison, *stream_);
    device_.fill(raw(first + bytes, kGuard), kPoison, *stream_);
    set_.prepare(call);
    set_.issue(call, {*stream_, {first, bytes}});
    std::vector<std::byte> guard(kGuard);
    device_.download(raw(guard.data(), kGuard), raw(first + bytes, kGuard), *stream_);
    finish();
    const auto untouched = [](std::byte b) { return b == std::byte{kPoison}; };
    if (!std::all_of(guard.begin(), guard.end(), untouched)) {
      throw Error(text("{}: {} writes past its {} bytes of scratch", one_.name, name_of(call.op), bytes));
    }
  }

  void collect(Block& block, CaseResults& results) {
    const std::size_t size = block.bytes.size();
    device_.download(raw(block.bytes.data(), size), raw(block.memory->data(), size), *stream_);
    finish();
    const TensorView written = block.view(block.bytes.data());
    if (block.tensor->role != Role::in) {
      std::vector<double> values(static_cast<std::size_t>(written.elements()));
      host_->convert(TensorView(values.data(), DType::f64, block.tensor->shape), written, *host_stream_);
      results[block.tensor->name] = std::move(values);
      host_->copy(block.view(block.expected.data()), written, *host_stream_);
    }
    if (std::memcmp(block.expected.data(), block.bytes.data(), size) != 0) {
      throw Error(text("{}: {} {}", one_.name, block.tensor->name,
                       block.tensor->role == Role::in ? "is an input and was written" : "was written beside its view"));
    }
  }

  KernelSet& set_;
  Device& device_;
  const OperationCase& one_;
  DType dtype_;
  std::int64_t shift_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Device> host_ = make_host_device();
  std::unique_ptr<Stream> host_stream_ = host_->make_stream("rounding");
  std::vector<Block> blocks_;
  CaseViews views_;
};

std::string compare_tensor(const std::string& name, const std::vector<double>& got, const std::vector<double>& want,
                           double tolerance) {
  double magnitude = 0;
  for (const double value : want) {
    if (std::isfinite(value)) magnitude = std::max(magnitude, std::abs(value));
  }
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
  return text("{}: {} of {} elements differ by more than {}; at {} got {} instead of {}\n", name, wrong, want.size(),
              allowed, worst, got[worst], want[worst]);
}

} // namespace

CaseResults run_case(KernelSet& set, Device& device, const OperationCase& one, DType dtype, std::int64_t shift) {
  return Runner(set, device, one, dtype, shift).run();
}

CaseResults reference_results(KernelSet& reference, const OperationCase& one) {
  const auto host = make_host_device();
  return run_case(reference, *host, one, DType::f64);
}

std::string differences(const CaseResults& got, const CaseResults& want, double tolerance) {
  std::string out;
  for (const auto& [name, values] : want) out += compare_tensor(name, got.at(name), values, tolerance);
  return out;
}

std::string compare(KernelSet& tested, Device& device, KernelSet& reference, const OperationCase& one, double tolerance,
                    std::int64_t shift) {
  return differences(run_case(tested, device, one, one.dtype, shift), reference_results(reference, one), tolerance);
}

std::vector<OperationCase> operation_cases(DType dtype) {
  std::vector<OperationCase> all = primitive_cases(dtype);
  for (OperationCase& one : fused_cases(dtype)) all.push_back(std::move(one));
  return all;
}

CaseTensor scalars_tensor(const StepScalars& scalars) {
  CaseTensor tensor{
      .name = "scalars", .shape = {static_cast<std::int64_t>(sizeof scalars)}, .kind = Kind::own, .dtype = DType::u8};
  unsigned char bytes[sizeof scalars];
  std::memcpy(bytes, &scalars, sizeof scalars);
  tensor.values.assign(std::begin(bytes), std::end(bytes));
  return tensor;
}

} // namespace triax::test
