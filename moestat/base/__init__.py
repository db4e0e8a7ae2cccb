"""What every room uses: registries, records, argument checks, symmetric matrices."""
