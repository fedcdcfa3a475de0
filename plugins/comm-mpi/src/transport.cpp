// SPDX-License-Identifier: Apache-2.0
#include "transport.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>

#include "triax/error.hpp"

namespace triax::comm_mpi {

namespace {

using p2p::Request;
using p2p::Status;

constexpr std::size_t kMaxBytes = std::size_t{1} << 30; // of an MPI operation
constexpr std::size_t kOperations = 1024;               // capacity at the start
constexpr double kCloseS = 2;                           // seconds for sent messages to leave

} // namespace

MpiTransport::MpiTransport(Device& of, int world, std::size_t staging_bytes, int polls)
    : Transport(of), polls_(polls), process_(world), tags_(process_.tag_bits()) {
  if (process_.tag_bits() < TagLayout::kMinBits)
    throw Error(text("this MPI has tags of {} bits, and {} are needed", process_.tag_bits(), TagLayout::kMinBits),
                "comm-mpi", "use another MPI, or another transport of it");
  address_ = std::to_string(process_.rank());
  for (std::size_t i = 0; i < kOperations; ++i) free_.push_back(&operations_.emplace_back());
  handles_.reserve(kOperations);
  operations_of_.reserve(kOperations);
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
  if (!handles_.empty() || skips_flush()) MpiProcess::leave_unfinalized();
}

p2p::Endpoint& MpiTransport::connect(std::string_view address, std::string_view, int rank) {
  int found = -1;
  const auto [end, error] = std::from_chars(address.data(), address.data() + address.size(), found);
  if (error != std::errc() || end != address.data() + address.size() || found < 0 || found >= process_.size())
    throw Error(text("rank {} has published \"{}\", which is no MPI rank", rank, address), "comm-mpi",
                "start all ranks of the run with one launcher");
  for (const auto& endpoint : endpoints_)
    if (endpoint->rank == found) return *endpoint;
  endpoints_.push_back(std::make_unique<MpiEndpoint>());
  endpoints_.back()->rank = found;
  return *endpoints_.back();
}

MpiTransport::Operation& MpiTransport::begin(Request& request) noexcept {
  if (free_.empty()) free_.push_back(&operations_.emplace_back());
  Operation& out = *free_.back();
  free_.pop_back();
  out.request = &request;
  out.open = 0;
  out.status = Status::ok;
  out.length = 0;
  out.why = nullptr;
  request.handle = &out;
  return out;
}

/// Calls post(begin, count, handle) for each part of the message.
template <class Post>
void MpiTransport::post(Operation& operation, std::size_t bytes, const Post& post) noexcept {
  std::size_t begin = 0;
  do {
    const std::size_t count = std::min(bytes - begin, kMaxBytes);
    MPI_Request handle = MPI_REQUEST_NULL;
    if (const int code = post(begin, static_cast<int>(count), &handle); code != MPI_SUCCESS) {
      operation.status = Status::failed;
      operation.why = error_text(code);
      break;
    }
    handles_.push_back(handle);
    operations_of_.push_back(&operation);
    ++operation.open;
    begin += count;
  } while (begin < bytes);
  if (operation.open == 0) finish(operation);
}

const std::byte* MpiTransport::packed(Operation& operation) noexcept {
  const p2p::Piece &first = operation.request->pieces[0], &second = operation.request->pieces[1];
  if (!second.data) return static_cast<const std::byte*>(first.data);
  if (!operation.packed) operation.packed = std::make_unique<std::byte[]>(p2p::kMaxTwoPieces);
  std::memcpy(operation.packed.get(), first.data, first.bytes);
  std::memcpy(operation.packed.get() + first.bytes, second.data, second.bytes);
  return operation.packed.get();
}

void MpiTransport::post_send(Request& request, p2p::Endpoint& endpoint, p2p::Tag tag, p2p::Side, bool sync) noexcept {
  Operation& operation = begin(request);
  const std::byte* const data = packed(operation);
  const int to = static_cast<MpiEndpoint&>(endpoint).rank, mpi_tag = tags_.pack(tag);
  const auto send = sync ? MPI_Issend : MPI_Isend;
  post(operation, request.pieces[0].bytes + request.pieces[1].bytes,
       [&](std::size_t at, int count, MPI_Request* handle) {
         return send(data + at, count, MPI_BYTE, to, mpi_tag, MPI_COMM_WORLD, handle);
       });
}

void MpiTransport::post_receive(Request& request, p2p::Endpoint& from, void* data, std::size_t bytes, p2p::Tag tag,
                                p2p::Side) noexcept {
  const int source = static_cast<MpiEndpoint&>(from).rank, mpi_tag = tags_.pack(tag);
  post(begin(request), bytes, [&](std::size_t at, int count, MPI_Request* handle) {
    return MPI_Irecv(static_cast<std::byte*>(data) + at, count, MPI_BYTE, source, mpi_tag, MPI_COMM_WORLD, handle);
  });
}

/// MPI cancels a receive that has not matched, and no send.
void MpiTransport::post_cancel(Request& request) noexcept {
  auto& operation = *static_cast<Operation*>(request.handle);
  if (!request.receives) return;
  for (std::size_t i = handles_.size(); i-- > 0;) {
    if (operations_of_[i] != &operation) continue;
    MPI_Cancel(&handles_[i]);
    int is_done = 0;
    MPI_Status status{};
    const int code = MPI_Test(&handles_[i], &is_done, &status);
    if (!is_done) continue; // it has matched: the rest of the message will arrive
    remove(i);
    end_one(operation, code, status);
  }
}

void MpiTransport::end_one(Operation& operation, int code, const MPI_Status& status) noexcept {
  int is_cancelled = 0, count = 0;
  MPI_Test_cancelled(&status, &is_cancelled);
  if (operation.request->receives && !is_cancelled) MPI_Get_count(&status, MPI_BYTE, &count);
  operation.length += static_cast<std::size_t>(std::max(count, 0));
  if (is_cancelled) {
    operation.status = Status::cancelled;
  } else if (code != MPI_SUCCESS) {
    int error_class = code;
    MPI_Error_class(code, &error_class);
    operation.status = error_class == MPI_ERR_TRUNCATE ? Status::truncated : Status::failed;
    operation.why = error_text(code);
  }
  if (--operation.open == 0) finish(operation);
}

void MpiTransport::finish(Operation& operation) noexcept {
  Request& request = *operation.request;
  free_.push_back(&operation);
  complete(request, operation.status, operation.length, operation.why);
}

void MpiTransport::remove(std::size_t index) noexcept {
  handles_[index] = handles_.back();
  operations_of_[index] = operations_of_.back();
  handles_.pop_back();
  operations_of_.pop_back();
}

bool MpiTransport::advance() noexcept {
  if (handles_.empty()) return false;
  done_.resize(std::max(done_.size(), handles_.capacity()));
  statuses_.resize(done_.size());
  int count = 0;
  const int code =
      MPI_Testsome(static_cast<int>(handles_.size()), handles_.data(), &count, done_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
    retire(text("MPI_Testsome of rank {}: {}", process_.rank(), error_text(code)));
  if (count == MPI_UNDEFINED || count == 0) return false;
  // Completions may post operations, so the completed ones are taken out first; from the end, where nothing moves that
  // is still to go.
  for (int i = 0; i < count; ++i)
    ended_.push_back({operations_of_[static_cast<std::size_t>(done_[static_cast<std::size_t>(i)])],
                      code == MPI_ERR_IN_STATUS ? statuses_[static_cast<std::size_t>(i)].MPI_ERROR : code,
                      statuses_[static_cast<std::size_t>(i)]});
  std::sort(done_.begin(), done_.begin() + count, std::greater<>());
  for (int i = 0; i < count; ++i) remove(static_cast<std::size_t>(done_[static_cast<std::size_t>(i)]));
  for (const Ended& one : ended_) end_one(*one.operation, one.code, one.status);
  ended_.clear();
  return true;
}

bool MpiTransport::find(p2p::Endpoint& from, p2p::Tag tag, p2p::Tag& found, std::size_t& bytes) noexcept {
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8}) {
    const p2p::Tag other = p2p::with_type(tag, type);
    int is_there = 0, count = 0;
    MPI_Status status{};
    if (other == tag ||
        MPI_Iprobe(static_cast<MpiEndpoint&>(from).rank, tags_.pack(other), MPI_COMM_WORLD, &is_there, &status) !=
            MPI_SUCCESS ||
        !is_there)
      continue;
    MPI_Get_count(&status, MPI_BYTE, &count);
    found = other;
    bytes = static_cast<std::size_t>(std::max(count, 0));
    return true;
  }
  return false;
}

} // namespace triax::comm_mpi
