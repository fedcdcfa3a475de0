// SPDX-License-Identifier: Apache-2.0
#include "train/agreement.hpp"

#include <algorithm>

namespace triax::train {

Agreement::Agreement(Device& device, Stream& stream, std::vector<Communicator*> groups, std::int64_t max_values)
    : device_(device),
      stream_(stream),
      groups_(std::move(groups)),
      on_device_(device.allocate(sizeof(std::int32_t) * static_cast<std::size_t>(max_values), MemoryKind::device)),
      on_host_(device.allocate(sizeof(std::int32_t) * static_cast<std::size_t>(max_values), MemoryKind::pinned)),
      values_(on_device_->data(), DType::i32, {max_values}),
      host_values_(on_host_->data(), DType::i32, {max_values}) {}

std::int32_t Agreement::largest(std::int32_t value, Deadline deadline) {
  largest({&value, 1}, deadline);
  return value;
}

/// The maximum over one axis after the other is the maximum over all ranks.
void Agreement::largest(std::span<std::int32_t> values, Deadline deadline) {
  if (groups_.empty() || values.empty()) return;
  const auto count = static_cast<std::int64_t>(values.size());
  const TensorView on_device = values_.slice(0, 0, count), host = host_values_.slice(0, 0, count);
  std::ranges::copy(values, host.as<std::int32_t>());
  device_.upload(on_device, host, stream_);
  for (Communicator* group : groups_)
    group->wait(group->all_reduce(on_device, on_device, Reduce::max, stream_), stream_);
  device_.wait(stream_.record(), deadline); // before operations that wait inside the call
  device_.download(host, on_device, stream_);
  device_.wait(stream_.record(), deadline);
  std::copy_n(host.as<const std::int32_t>(), values.size(), values.begin());
}

} // namespace triax::train
