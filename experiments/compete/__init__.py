"""CompeteSMoE, both versions."""
