// SPDX-License-Identifier: Apache-2.0
#include "train/agreement.hpp"

namespace triax::train {

Agreement::Agreement(Device& device, Stream& stream, std::vector<Communicator*> groups)
    : device_(device),
      stream_(stream),
      groups_(std::move(groups)),
      on_device_(device.allocate(sizeof(std::int32_t), MemoryKind::device)),
      on_host_(device.allocate(sizeof(std::int32_t), MemoryKind::pinned)),
      value_(on_device_->data(), DType::i32, {1}),
      host_value_(on_host_->data(), DType::i32, {1}) {}

/// The maximum over one axis after the other is the maximum over all ranks.
std::int32_t Agreement::largest(std::int32_t value, Deadline deadline) {
  if (groups_.empty()) return value;
  *host_value_.as<std::int32_t>() = value;
  device_.upload(value_, host_value_, stream_);
  for (Communicator* group : groups_) group->wait(group->all_reduce(value_, value_, Reduce::max, stream_), stream_);
  device_.wait(stream_.record(), deadline); // before operations that wait inside the call
  device_.download(host_value_, value_, stream_);
  device_.wait(stream_.record(), deadline);
  return *host_value_.as<std::int32_t>();
}

} // namespace triax::train
