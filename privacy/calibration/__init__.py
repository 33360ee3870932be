"""How much noise a scenario needs: noise plans, strategies, and the rules the papers publish."""
