# The command for Nix: `nix run . -- ls -s demo recent`. vendorHash follows go.sum; nix build says the new one.
{
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  outputs = { self, nixpkgs }:
    let systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
    in {
      packages = nixpkgs.lib.genAttrs systems (system:
        let pkgs = nixpkgs.legacyPackages.${system};
        in {
          default = pkgs.buildGoModule {
            pname = "sessionfs";
            version = self.shortRev or "dirty"; # the program knows its own
            src = self;
            vendorHash = "sha256-DNe8mHx7siRxtfYAp7IhhVGLD8RKF2aM7hHqsRoMtoo=";
            subPackages = [ "cmd/sessionfs" ];
            env.CGO_ENABLED = 0;
            ldflags = [ "-s" "-w" ];
            doCheck = false; # tests need FUSE
            nativeBuildInputs = [ pkgs.installShellFiles ];
            postInstall = ''
              bash scripts/man >sessionfs.1
              installManPage sessionfs.1
              for shell in bash zsh fish; do
                $out/bin/sessionfs completion $shell >completion.$shell
                installShellCompletion --cmd sessionfs --$shell completion.$shell
              done
            '';
            meta = {
              description = "Coding agents' sessions as files and directories";
              license = pkgs.lib.licenses.mit;
              mainProgram = "sessionfs";
            };
          };
        });
    };
}
