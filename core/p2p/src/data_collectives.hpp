// SPDX-License-Identifier: Apache-2.0
// all_gather, all_to_all and broadcast: openings and data are sent at once, the data directly between the members'
// buffers. Staged device memory moves as flows, one per member or one for all. The root of a broadcast receives
// openings from all members; they receive from the root only.
#pragma once

#include "collective.hpp"

namespace triax::p2p {

class Movement final : public CollectiveCall {
 public:
  Movement(PeerEndpoints& endpoints, const Plan& plan);
  StagingNeed staging_need(const Collective& of) const noexcept override;

 private:
  /// Bytes for or from a member; bytes < 0: no message.
  struct Piece {
    std::int64_t begin = 0, bytes = -1;
  };

  void launch() noexcept override;
  bool run() noexcept override;
  bool exchanges_with(int member) const noexcept;
  Piece out_piece(int member) const noexcept;
  Piece in_piece(int member) const noexcept;
  void keep_own() noexcept;
  void launch_flows() noexcept;
  bool run_flows() noexcept;
  /// True if all members get the same data.
  static bool same_to_all(Collective::Kind kind) noexcept { return kind != Collective::Kind::all_to_all; }
  StagedMessage flow(std::byte* device, std::int64_t bytes, Use use, int first, int last, int source) noexcept;

  const std::size_t piece_;
  std::vector<StagedMessage> ins_, outs_; // capacity for the largest number

  int agreed_ = 0; // members below it agree
};

} // namespace triax::p2p
