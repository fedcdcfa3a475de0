// SPDX-License-Identifier: Apache-2.0
#include "mpi_transport.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <functional>

#include "byte_count.hpp"
#include "triax/error.hpp"

namespace triax::comm_mpi {

namespace {

using p2p::Request;
using p2p::Status;

constexpr std::size_t kOperations = 1024; // capacity at the start
constexpr std::size_t kPackedPerPeer = 4; // calls on several streams, and a call whose predecessor's is still leaving
constexpr double kCloseS = 2;             // seconds for sent messages to leave
constexpr const char* kAbandoned = "MPI is not used any more in this process, because another group was aborted";

/// The datatype of a message that is longer than an int counts; MPI_DATATYPE_NULL if MPI refuses.
MPI_Datatype make_long_type(ByteCount count) noexcept {
  MPI_Datatype block = MPI_DATATYPE_NULL, out = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(ByteCount::kBlock), MPI_BYTE, &block);
  const std::array<int, 2> lengths = {count.blocks, count.bytes};
  const std::array<MPI_Aint, 2> begins = {
      0, static_cast<MPI_Aint>(count.blocks) * static_cast<MPI_Aint>(ByteCount::kBlock)};
  const std::array<MPI_Datatype, 2> types = {block, MPI_BYTE};
  if (MPI_Type_create_struct(2, lengths.data(), begins.data(), types.data(), &out) == MPI_SUCCESS)
    MPI_Type_commit(&out);
  MPI_Type_free(&block);
  return out;
}

std::size_t bytes_of(const MPI_Status& status) noexcept {
  MPI_Count out = 0; // all types here have MPI_BYTE as their basic elements
  MPI_Get_elements_x(&status, MPI_BYTE, &out);
  return static_cast<std::size_t>(std::max<MPI_Count>(out, 0));
}

} // namespace

MpiTransport::MpiTransport(Device& of, int world, std::size_t staging_bytes, int polls)
    : Transport(of), polls_(polls), process_(world), tags_(process_.tag_bits()) {
  if (process_.tag_bits() < TagLayout::kMinBits)
    throw Error(text("this MPI has tags of {} bits, but {} are needed", process_.tag_bits(), TagLayout::kMinBits),
                "comm-mpi", "use another MPI, or another transport of it");
  address_ = std::to_string(process_.rank());
  free_.reserve(kOperations);
  for (std::size_t i = 0; i < kOperations; ++i) free_.push_back(&operations_.emplace_back());
  handles_.reserve(kOperations);
  operations_of_.reserve(kOperations);
  done_.resize(kOperations);
  statuses_.resize(kOperations);
  ended_.reserve(kOperations);
  if (of.kind() != DeviceKind::host) make_staging(staging_bytes, 0);
  device().add_source(*this);
}

MpiTransport::~MpiTransport() {
  device().remove_source(*this);
  close();
}

/// Groups that have closed have left sends of short messages.
void MpiTransport::close() noexcept {
  const Deadline deadline = deadline_in(skips_flush() ? 0 : kCloseS);
  while (!retired() && !handles_.empty() && Clock::now() < deadline)
    if (!advance()) sched_yield();
  if (!handles_.empty()) {
    MpiProcess::abandon();
  } else if (skips_flush()) {
    MpiProcess::leave_unfinalized();
  }
}

p2p::Endpoint& MpiTransport::connect(std::string_view address, std::string_view, int rank) {
  int found = -1;
  const auto [end, error] = std::from_chars(address.data(), address.data() + address.size(), found);
  if (error != std::errc() || end != address.data() + address.size() || found < 0 || found >= process_.size())
    throw Error(text("rank {} has published \"{}\", which is not an MPI rank", rank, address), "comm-mpi",
                "start all ranks of the run with one launcher");
  for (const auto& endpoint : endpoints_)
    if (endpoint->rank == found) return *endpoint;
  endpoints_.push_back(std::make_unique<MpiEndpoint>());
  endpoints_.back()->rank = found;
  add_packed(kPackedPerPeer);
  return *endpoints_.back();
}

MpiTransport::Operation& MpiTransport::take_operation() noexcept {
  if (free_.empty()) free_.push_back(&operations_.emplace_back());
  Operation& out = *free_.back();
  free_.pop_back();
  return out;
}

void MpiTransport::add_packed(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    free_packed_.push_back(packed_.emplace_back(std::make_unique<std::byte[]>(p2p::kMaxTwoSegments)).get());
}

std::byte* MpiTransport::take_packed() noexcept {
  if (free_packed_.empty()) add_packed(1);
  std::byte* const out = free_packed_.back();
  free_packed_.pop_back();
  return out;
}

template <class Post>
void MpiTransport::begin(Request& request, std::byte* packed, std::size_t bytes, const Post& post) noexcept {
  Operation& operation = take_operation();
  operation = {.request = &request, .packed = packed};
  request.handle = &operation;
  if (MpiProcess::abandoned()) return finish(operation, Status::failed, 0, kAbandoned);
  const ByteCount count(bytes);
  MPI_Request handle = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  if (count.blocks == 0) {
    code = post(count.bytes, MPI_BYTE, &handle);
  } else {
    MPI_Datatype type = make_long_type(count);
    code = post(1, type, &handle);
    if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type); // when the operation has completed
  }
  if (code != MPI_SUCCESS) return finish(operation, Status::failed, 0, error_text(code));
  handles_.push_back(handle);
  operations_of_.push_back(&operation);
}

void MpiTransport::post_send(Request& request, p2p::Endpoint& endpoint, p2p::Tag tag, p2p::Side, bool sync) noexcept {
  const p2p::Segment &first = request.segments[0], &second = request.segments[1];
  std::byte* packed = nullptr;
  if (second.data) {
    packed = take_packed();
    std::memcpy(packed, first.data, first.bytes);
    std::memcpy(packed + first.bytes, second.data, second.bytes);
  }
  const void* const data = packed ? packed : first.data;
  const int to = rank_of(endpoint), mpi_tag = tags_.pack(tag);
  begin(request, packed, first.bytes + second.bytes, [&](int count, MPI_Datatype type, MPI_Request* handle) {
    return (sync ? MPI_Issend : MPI_Isend)(data, count, type, to, mpi_tag, process_.comm(), handle);
  });
}

int MpiTransport::rank_of(const p2p::Endpoint& endpoint) noexcept {
  return static_cast<const MpiEndpoint&>(endpoint).rank; // NOLINT(cppcoreguidelines-pro-type-static-cast-downcast)
}

void MpiTransport::post_receive(Request& request, p2p::Endpoint& from, void* data, std::size_t bytes, p2p::Tag tag,
                                p2p::Side) noexcept {
  const int source = rank_of(from), mpi_tag = tags_.pack(tag);
  begin(request, nullptr, bytes, [&](int count, MPI_Datatype type, MPI_Request* handle) {
    return MPI_Irecv(data, count, type, source, mpi_tag, process_.comm(), handle);
  });
}

/// MPI cancels a receive that has not matched, and no send.
void MpiTransport::post_cancel(Request& request) noexcept {
  if (!request.receives || MpiProcess::abandoned()) return;
  auto& operation = *static_cast<Operation*>(request.handle);
  const auto found = std::find(operations_of_.begin(), operations_of_.end(), &operation);
  if (found == operations_of_.end()) return; // it has completed, in this advance()
  const auto index = static_cast<std::size_t>(found - operations_of_.begin());
  MPI_Cancel(&handles_[index]);
  int is_done = 0;
  MPI_Status status{};
  const int code = MPI_Test(&handles_[index], &is_done, &status);
  if (!is_done) return; // it has matched: the rest of the message will arrive
  remove(index);
  end(operation, code, status);
}

void MpiTransport::end(Operation& operation, int code, const MPI_Status& status) noexcept {
  int is_cancelled = 0;
  MPI_Test_cancelled(&status, &is_cancelled);
  if (is_cancelled) return finish(operation, Status::cancelled, 0, nullptr);
  const std::size_t length = operation.request->receives ? bytes_of(status) : 0;
  if (code == MPI_SUCCESS) return finish(operation, Status::ok, length, nullptr);
  finish(operation, error_class(code) == MPI_ERR_TRUNCATE ? Status::truncated : Status::failed, length,
         error_text(code));
}

void MpiTransport::finish(Operation& operation, Status status, std::size_t length, const char* why) noexcept {
  Request& request = *operation.request;
  if (operation.packed) free_packed_.push_back(operation.packed);
  free_.push_back(&operation);
  complete(request, status, length, why);
}

void MpiTransport::remove(std::size_t index) noexcept {
  handles_[index] = handles_.back();
  operations_of_[index] = operations_of_.back();
  handles_.pop_back();
  operations_of_.pop_back();
}

bool MpiTransport::advance() noexcept {
  if (MpiProcess::abandoned()) {
    retire(kAbandoned);
    return false;
  }
  if (handles_.empty()) return false;
  done_.resize(std::max(done_.size(), handles_.capacity()));
  statuses_.resize(done_.size());
  int count = 0;
  const int code =
      MPI_Testsome(static_cast<int>(handles_.size()), handles_.data(), &count, done_.data(), statuses_.data());
  const bool in_status = code != MPI_SUCCESS && error_class(code) == MPI_ERR_IN_STATUS;
  if (code != MPI_SUCCESS && !in_status) retire(text("MPI_Testsome of rank {}: {}", process_.rank(), error_text(code)));
  if (count == MPI_UNDEFINED || count == 0) return false;
  // Completions may post operations, so the completed ones are taken out first; from the end, where nothing moves that
  // is still to go.
  for (int i = 0; i < count; ++i)
    ended_.push_back({operations_of_[static_cast<std::size_t>(done_[static_cast<std::size_t>(i)])],
                      in_status ? statuses_[static_cast<std::size_t>(i)].MPI_ERROR : code,
                      statuses_[static_cast<std::size_t>(i)]});
  std::sort(done_.begin(), done_.begin() + count, std::greater<>());
  for (int i = 0; i < count; ++i) remove(static_cast<std::size_t>(done_[static_cast<std::size_t>(i)]));
  for (const Ended& one : ended_) end(*one.operation, one.code, one.status);
  ended_.clear();
  return true;
}

bool MpiTransport::find(p2p::Endpoint& from, p2p::Tag tag, p2p::Tag& found, std::size_t& bytes) noexcept {
  if (MpiProcess::abandoned()) return false;
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8}) {
    const p2p::Tag other = p2p::with_type(tag, type);
    int is_there = 0;
    MPI_Status status{};
    if (other == tag ||
        MPI_Iprobe(rank_of(from), tags_.pack(other), process_.comm(), &is_there, &status) != MPI_SUCCESS || !is_there)
      continue;
    found = other;
    bytes = bytes_of(status);
    return true;
  }
  return false;
}

} // namespace triax::comm_mpi
