// Staging a step's data.
#include "executor/batches.hpp"

namespace triax::executor {

void Batches::place(RankMemory& memory) {
  const std::int64_t m = shape_.microbatches, s = shape_.sequence, b = shape_.micro;
  const auto views = [&](Arena& arena, TensorView& tokens, TensorView& targets, TensorView& samples,
                         TensorView& losses) {
    tokens = arena.tensor(DType::i32, {m, s, b});
    targets = arena.tensor(DType::i32, {m, s, b});
    samples = arena.tensor(DType::i64, {m, b});
    losses = arena.tensor(DType::f64, {m, b});
    std::vector<MicrobatchViews> out;
    for (std::int64_t k = 0; k < m; ++k) out.push_back({tokens.at(k), targets.at(k), samples.at(k), losses.at(k)});
    return out;
  };
  host_ = views(memory.staging, tokens_, targets_, samples_, losses_);
  device_ = views(memory.batches, on_device_tokens_, on_device_targets_, on_device_samples_, on_device_losses_);
}

void Batches::stage(BatchSource& source, std::int64_t first, Device& device, Stream& stream, Deadline deadline) {
  device.wait(uploaded_, deadline);
  for (std::int64_t k = 0; k < shape_.microbatches; ++k) {
    const MicrobatchViews& views = host_[static_cast<std::size_t>(k)];
    const std::int64_t global = k * shape_.data_size + shape_.data_index;
    auto* numbers = views.samples.as<std::int64_t>();
    for (std::int64_t i = 0; i < shape_.micro; ++i) numbers[i] = first + global * shape_.micro + i;
    source.microbatch({numbers, static_cast<std::size_t>(shape_.micro)}, views.tokens, views.targets);
  }
  device.upload(on_device_tokens_, tokens_, stream);
  device.upload(on_device_targets_, targets_, stream);
  device.upload(on_device_samples_, samples_, stream);
  uploaded_ = stream.record();
}

void Batches::download_losses(Device& device, Stream& stream) {
  device.download(losses_, on_device_losses_, stream);
}

std::span<const double> Batches::losses() const {
  return {losses_.as<double>(), static_cast<std::size_t>(losses_.elements())};
}

} // namespace triax::executor
